"""The environment that the image ships, built by the same script: what is in it, and that it runs as anybody."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD_SECONDS = 600
STRANGER = "1000670000"  # a user id as OpenShift gives them: no account, no home


@pytest.fixture(scope="module")
def environment() -> Iterator[Path]:
    """The built environment, in a folder that every user can enter."""
    with TemporaryDirectory(prefix="spark-ui-agent-test-") as name:
        Path(name).chmod(0o755)
        argv = [sys.executable, str(ROOT / "scripts" / "image_env.py"), f"{name}/env"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        yield Path(name) / "env"


def as_stranger() -> list[str]:
    """Prefix for argv: another user id, group 0, and of root's capabilities only the one to read.

    Reading is kept since the interpreter may be in a home folder; writing is what must not be needed. Without root the
    tests run as an ordinary user already.
    """
    if os.geteuid() != 0:
        return []
    keep = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search", "--no-new-privs"]
    return ["setpriv", f"--reuid={STRANGER}", "--regid=0", "--clear-groups", *keep]


def image_variables() -> dict[str, str]:
    """The variables that the Dockerfile's last stage sets."""
    last = (ROOT / "Dockerfile").read_text().split("\nFROM ")[-1]
    block = re.search(r"^ENV ((?:.*\\\n)*.*)", last, re.MULTILINE)
    assert block is not None
    return dict(pair.split("=", 1) for pair in block.group(1).replace("\\\n", " ").split())


def tree(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.lstat().st_mtime_ns) for path in folder.rglob("*")}


def run(environment: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [*as_stranger(), str(environment / "bin" / "spark-ui-agent"), *arguments]
    env = {"PATH": os.environ["PATH"], "HOME": "/", **image_variables()}
    return subprocess.run(argv, env=env, cwd="/", capture_output=True, text=True, timeout=60, check=False)


def test_it_runs_as_any_user_and_writes_nothing(environment: Path) -> None:
    before = tree(environment)

    done = run(environment, "--version")

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] in done.stdout
    assert tree(environment) == before


def test_the_image_starts_what_is_installed() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    destination = re.search(r"^RUN python3 scripts/image_env.py (\S+)$", dockerfile, re.MULTILINE)
    assert destination is not None
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    assert f"COPY --from=build {destination[1]} {destination[1]}\n" in dockerfile
    assert f'ENTRYPOINT ["{destination[1]}/bin/{next(iter(scripts))}"]' in dockerfile
    assert re.search(r"^USER \d+:0$", dockerfile, re.MULTILINE), (
        "a named user can't be checked by runAsNonRoot"
    )


def test_what_the_dockerfile_copies_is_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        word.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        for word in line.split()
    }

    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def test_it_holds_the_agent_and_the_lock_alone(environment: Path) -> None:
    (packages,) = environment.glob("lib/python3.*/site-packages")
    installed = {
        path.name.rsplit("-", 2)[0].replace("_", "-").lower() for path in packages.glob("*.dist-info")
    }
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / "agent.txt").read_text(), re.MULTILINE))

    assert installed - {"spark-ui-agent"} <= locked
    assert {"spark-ui-agent", "aiohttp", "kubernetes-asyncio"} <= installed
    assert not list(packages.rglob("tests"))
    assert not (packages / "pip").exists()


def test_every_module_has_bytecode_that_is_not_checked_against_its_source(environment: Path) -> None:
    (packages,) = environment.glob("lib/python3.*/site-packages")
    sources = [path for path in packages.rglob("*.py") if path.name != "__init__.py" or path.stat().st_size]

    for source in sources:
        bytecode = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        flags = int.from_bytes(bytecode.read_bytes()[4:8], "little")
        assert flags == 0b01, f"{source}: hash-based and unchecked (PEP 552) is 1, found {flags}"
