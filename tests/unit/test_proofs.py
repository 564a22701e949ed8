"""What a restarted agent knows: what was proven is kept, and holds for the very socket alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.act.proofs import recall, remember
from agent.act.volume import had_a_ui
from agent.decide.desired import fold, initial
from agent.model import Answered, Fact, HookBound, Listener, Scanned, Scheme, Taken, Verdict

from .senses import settings

TOLD = Listener(4040, "::", 185, 7, 1)
ASKED = Listener(4440, "10.0.0.9", 185, 8, 1)
FACTS: list[Fact] = [
    HookBound(42, 4040, Scheme.HTTP, TOLD),
    Answered(ASKED, Scheme.HTTPS, Verdict(Taken.OURS, "lists it", "spark-aaa", 1767225600000)),
]


def remembered(place: Path) -> None:
    """Learn the facts and keep what they prove."""
    world = fold(initial(), Scanned(frozenset({TOLD, ASKED})), settings())
    for fact in FACTS:
        world = fold(world, fact, settings())
    remember(place, world.proven)


def test_what_was_proven_is_told_again(tmp_path: Path) -> None:
    assert not had_a_ui(tmp_path)
    remembered(tmp_path)
    assert had_a_ui(tmp_path)
    hook, rest = recall(tmp_path, [TOLD, ASKED])
    assert hook == FACTS[0]
    assert isinstance(rest, Answered)
    assert (rest.listener, rest.scheme) == (ASKED, Scheme.HTTPS)
    assert (rest.verdict.taken, rest.verdict.application) == (Taken.OURS, "spark-aaa")
    assert rest.verdict.started == 1767225600000


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ([], 0),
        ([ASKED], 1),
        # the port is bound anew, by whomever; or the inode's number is used again
        ([Listener(4040, "::", 185, 9, 1)], 0),
        ([Listener(4041, "::", 185, 7, 1)], 0),
    ],
)
def test_only_the_very_socket_is_taken_for_it(tmp_path: Path, now: list[Listener], told: int) -> None:
    remembered(tmp_path)
    assert len(recall(tmp_path, now)) == told


def test_nothing_is_left_of_what_is_proven_no_more(tmp_path: Path) -> None:
    remembered(tmp_path)
    remember(tmp_path, [])
    assert recall(tmp_path, [TOLD, ASKED]) == []
    assert had_a_ui(tmp_path)


def test_a_volume_that_can_not_be_written_costs_nothing_else(tmp_path: Path) -> None:
    remembered(tmp_path / "absent")
    assert not had_a_ui(tmp_path / "absent")


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "{}",
        "[[1]]",
        '[[4040, "ftp", 7, 3, "a", 4]]',
        '[[4040, "http", "7", 3, "a", 4]]',
        "[" * 100_000,
        "\x00",
    ],
)
def test_what_was_not_remembered_is_not_recalled(tmp_path: Path, odd: str) -> None:
    (tmp_path / "proof.json").write_text(odd)
    assert recall(tmp_path, [TOLD, ASKED]) == []
