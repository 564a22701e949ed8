"""The lock files belong to pyproject.toml and name no address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path.name for path in (ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OURS = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
GROUPS = {
    name: [Requirement(line) for line in lines if isinstance(line, str)]
    for name, lines in PROJECT["dependency-groups"].items()
}


def pins(name: str) -> dict[str, str]:
    """Name to version, as the lock file pins them."""
    text = (ROOT / "requirements" / name).read_text()
    return dict(re.findall(r"^([a-z0-9.-]+)==([^ \\]+)", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("agent.txt", OURS),
        ("build.txt", GROUPS["build"]),
        ("dev.txt", [*OURS, *GROUPS["build"], *GROUPS["dev"]]),
    ],
)
def test_the_lock_satisfies_the_project(name: str, wanted: list[Requirement]) -> None:
    locked = pins(name)
    missing = [f"{r}" for r in wanted if not r.specifier.contains(locked.get(canonicalize_name(r.name), "0"))]

    assert not missing, "run make lock"


def test_the_build_is_locked_by_what_the_build_system_asks_for() -> None:
    asked = [Requirement(line) for line in PROJECT["build-system"]["requires"]]

    assert [(r.name, r.specifier) for r in asked] == [(r.name, r.specifier) for r in GROUPS["build"]]


def test_the_agent_is_tested_with_the_versions_that_are_shipped() -> None:
    tested = pins("dev.txt")

    assert pins("agent.txt").items() <= tested.items()
    assert pins("build.txt").items() <= tested.items()


@pytest.mark.parametrize("name", FILES)
def test_everything_is_pinned_with_hashes_and_without_addresses(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    lines = re.sub(r" \\\n\s+", " ", text).splitlines()
    entries = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]

    assert entries
    for entry in entries:
        assert re.fullmatch(r"[a-z0-9.-]+==[^ ]+( ; [^\\]+?)?( --hash=sha256:[0-9a-f]{64})+", entry), entry[
            :80
        ]
    assert "://" not in text
    assert not re.search(r"(?<![\w.])/\w+/", text), "a path outside the project"
