"""One cluster for the whole session, and what was lived on it; the tests look at records."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from sandbox.node.cluster import Cluster, started
from sandbox.node.needs import MissingError, check
from sandbox.prompt import run_promptly
from tests.e2e.admitted import Admitted, live_admitted
from tests.e2e.apache import CASES as APACHE_CASES
from tests.e2e.apache import live_apache
from tests.e2e.cut_short import Restarted, live_restarted
from tests.e2e.deletion import Deleted, live_deleted
from tests.e2e.harm import (
    BROKEN_AGENTS,
    BROKEN_JOBS,
    Beside,
    Harmed,
    live_beside,
    live_harmed,
)
from tests.e2e.kubeflow import Kubeflow, live_kubeflow
from tests.e2e.lives import Alone, Slow, Whole, Worked, live_alone, live_slow, live_whole, live_worked
from tests.e2e.lost import Killed, Lost, Returned, live_killed, live_lost, live_returned
from tests.e2e.notebook import Notebook, live_notebook
from tests.e2e.operated import Operated
from tests.e2e.pair import Pair, live_pair

T = TypeVar("T")

# a fixture, and its parameter where it has one
Key = tuple[str, str]
Life = Callable[[Cluster], Awaitable[object]]

HERE = Path(__file__).parent
SIDECARS = ("native", "plain")
VARIANTS = ("native", "plain", "overlays/random-port")
# a driver's start is CPU, the rest of its life is waiting
LIVES_AT_ONCE = 3
LIFE_SECONDS = 600.0


def _variant(variant: str) -> Life:
    return partial(live_whole, name=variant.rpartition("/")[2], variant=variant)


# the longest first; pairs, which go one after the other, are begun in between
LIVES: Mapping[Key, Life] = {
    ("slow", ""): live_slow,
    ("lost", ""): live_lost,
    ("returned", ""): live_returned,
    ("notebook", ""): live_notebook,
    ("restarted", ""): live_restarted,
    ("admitted", ""): live_admitted,
    **{("broken_job", case.name): partial(live_beside, case=case) for case in BROKEN_JOBS},
    **{("whole", variant): _variant(variant) for variant in VARIANTS},
    **{("broken_agent", case.name): partial(live_harmed, case=case) for case in BROKEN_AGENTS},
    ("kubeflow", ""): live_kubeflow,
    **{("apache", case): partial(live_apache, case=case) for case in APACHE_CASES},
    ("worked", ""): live_worked,
    **{("deleted", variant): partial(live_deleted, variant=variant) for variant in SIDECARS},
    ("killed", ""): live_killed,
    ("alone", ""): live_alone,
}


class Outcomes:
    """What each life recorded, or how it failed."""

    def __init__(self, found: Mapping[Key, object]) -> None:
        self._found = found

    def of(self, key: Key, kind: type[T]) -> T:
        """Return what was recorded; raise how it failed."""
        outcome = self._found[key]
        if isinstance(outcome, BaseException):
            raise outcome
        assert isinstance(outcome, kind)
        return outcome


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of one node; skips with what the machine lacks, which fails in CI."""
    try:
        check()
    except MissingError as error:
        pytest.skip(str(error))
    capture = request.config.pluginmanager.getplugin("capturemanager")
    # builds of minutes must be seen to move
    with capture.global_and_fixture_disabled():
        running = started()
        found = running.__enter__()
    try:
        yield found
    finally:
        running.__exit__(None, None, None)


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest, cluster: Cluster) -> Outcomes:
    """All lives that the tests of this session ask for."""
    needed = {
        (name, getattr(getattr(item, "callspec", None), "params", {}).get(name, ""))
        for item in request.session.items
        # others have fixtures of the same names
        if HERE in item.path.parents
        for name in getattr(item, "fixturenames", ())
    }
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        return Outcomes(run_promptly(_live_all(cluster, _in_order(needed))))


def _in_order(needed: Collection[Key]) -> dict[Key, Life]:
    """Return what is to be lived, with the pairs spread over the other lives: each waits for the one before it."""
    others = [key for key in LIVES if key in needed]
    pairs = sorted(key for key in needed if key[0] == "pair")
    step = len(others) // (len(pairs) + 1) + 1
    for number, pair in enumerate(pairs):
        others.insert(1 + number * (step + 1), pair)
    return {key: LIVES.get(key, live_pair) for key in others}


async def _live_all(cluster: Cluster, lives: Mapping[Key, Life]) -> dict[Key, object]:
    room, began, ended = asyncio.Semaphore(LIVES_AT_ONCE), time.monotonic(), 0

    async def live(key: Key) -> object:
        nonlocal ended
        async with room:
            try:
                async with asyncio.timeout(LIFE_SECONDS):
                    return await lives[key](cluster)
            finally:
                ended += 1
                passed = time.monotonic() - began
                name = " ".join(filter(None, key))
                print(f"\ne2e: {name}, {ended} of {len(lives)}, {passed:.0f} s ...", end="", file=sys.stderr)

    outcomes = await asyncio.gather(*map(live, lives), return_exceptions=True)
    return dict(zip(lives, outcomes, strict=True))


def _recorded(kind: type[T], *params: str) -> Callable[..., T]:
    """Make the fixture of the lives of one kind."""

    @pytest.fixture(scope="session", params=params or None)
    def record(request: pytest.FixtureRequest, outcomes: Outcomes) -> T:
        return outcomes.of((str(request.fixturename), str(getattr(request, "param", ""))), kind)

    return record


whole = _recorded(Whole, *VARIANTS)
alone = _recorded(Alone)
deleted = _recorded(Deleted, *SIDECARS)
restarted = _recorded(Restarted)
worked = _recorded(Worked)
slow = _recorded(Slow)
lost = _recorded(Lost)
killed = _recorded(Killed)
returned = _recorded(Returned)
admitted = _recorded(Admitted)
broken_job = _recorded(Beside, *(case.name for case in BROKEN_JOBS))
broken_agent = _recorded(Harmed, *(case.name for case in BROKEN_AGENTS))
pair = _recorded(Pair)
notebook = _recorded(Notebook)
kubeflow = _recorded(Kubeflow)
apache = _recorded(Operated, *APACHE_CASES)
