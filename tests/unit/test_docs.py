"""The documents say what the code does: every reason is explained, every link leads somewhere, no path leads out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from agent.model import HookState, State
from agent.tell.metrics import FAMILIES

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/**/*.md")])
MANIFESTS = sorted(ROOT.glob("deploy/**/*.yaml"))

# What stands for a text that is still to come. The last one is a bare word in capitals at the end of a sentence that
# has no stop, where a figure belongs.
PLACEHOLDERS = re.compile(
    r"(?i:\b(?:TODO|TBD|TBA|TBC|FIXME|XXX+|HACK|WIP|PLACEHOLDER)\b|\?\?\?|\blorem ipsum\b"
    r"|\b(?:to be|yet to be|still to be) (?:done|written|decided|defined|measured|filled|added)\b"
    r"|<(?:fill|insert|your|add)\b[^>]*>)|: [A-Z]{4,}$",
    re.MULTILINE,
)


def reasons() -> set[str]:
    """The first argument of each Trouble that agent/ makes."""
    found: set[str] = set()
    for path in (ROOT / "agent").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Trouble":
                code = node.args[0]
                assert isinstance(code, ast.Constant), f"{path}:{node.lineno}: a reason is a literal"
                found.add(str(code.value))
    return found


def explained(heading: str) -> set[str]:
    """The first column of the table under a heading of the troubleshooting guide."""
    text = (ROOT / "docs/troubleshooting.md").read_text()
    section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE))


def test_every_reason_has_its_row_and_no_row_is_left_over() -> None:
    assert explained("Reasons") == reasons()


def test_every_state_has_its_row() -> None:
    assert explained("States") == {state.value for state in State}


def test_every_state_of_the_hook_has_its_row() -> None:
    assert explained("The log hook") == {state.value for state in HookState}


def test_every_metric_has_its_row() -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text().split("## Metrics\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`([a-z_]+)`", row)] == [
        family.name for family in FAMILIES
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_of_this_repository(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).resolve().is_relative_to(ROOT)
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("path", [*DOCUMENTS, *MANIFESTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_left_to_be_filled_in(path: Path) -> None:
    left = [found.group() for found in PLACEHOLDERS.finditer(path.read_text())]
    assert left == []


@pytest.mark.parametrize(
    "text",
    [
        "The price: TODO, later.",
        "Spark 3.5 and tbd",
        "n=XXX",
        "it takes ???",
        "This is still to be written.",
        "image: <your image>",
        "measured on two cores: STARTCOST\n\nNext",
    ],
)
def test_a_placeholder_is_seen(text: str) -> None:
    assert PLACEHOLDERS.search(text)


@pytest.mark.parametrize(
    "text", ["told by SIGTERM", "verbs: get, patch", "HTTP on port 4900: REST.", "methods"]
)
def test_an_ordinary_text_is_none(text: str) -> None:
    assert PLACEHOLDERS.search(text) is None
