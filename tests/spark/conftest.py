"""Each life is lived once in a session, those that the chosen tests need side by side; the tests look at records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

import pytest

from sandbox.control_plane import ControlPlane
from sandbox.spark.install import VERSIONS
from tests.spark.lives import live_all
from tests.spark.short_lives import VERSION as ONE_VERSION
from tests.spark.short_lives import (
    Hidden,
    Marked,
    Pair,
    Secure,
    Unheard,
    live_hidden,
    live_marked,
    live_pair,
    live_secure,
    live_unheard,
)
from tests.spark.whole_life import Record, Work, live, live_alone

T = TypeVar("T")

# what is recorded, and of which Spark version where it is asked for more than one
Key = tuple[type, str]
Outcomes = Mapping[Key, object]

# What the fixtures below need to have been lived; ``version`` is that of the test.
NEEDS: Mapping[str, Callable[[str], set[Key]]] = {
    "record": lambda version: {(Record, version)},
    "alone": lambda version: {(Work, version)},
    "alone_too": lambda _: {(Work, ONE_VERSION)},
    "pair": lambda _: {(Pair, "")},
    "marked": lambda _: {(Marked, "")},
    "secure": lambda _: {(Secure, "")},
    "hidden": lambda _: {(Hidden, "")},
    "unheard": lambda _: {(Unheard, "")},
}


def _lives(plane: ControlPlane) -> dict[Key, Callable[[], Awaitable[object]]]:
    """Every life, the longest first."""
    lives: dict[Key, Callable[[], Awaitable[object]]] = {(Pair, ""): partial(live_pair, plane)}
    for version in VERSIONS:
        lives[Record, version] = partial(live, plane, version)
        lives[Work, version] = partial(live_alone, plane, version)
    return lives | {
        (Unheard, ""): live_unheard,
        (Marked, ""): partial(live_marked, plane),
        (Secure, ""): partial(live_secure, plane),
        (Hidden, ""): partial(live_hidden, plane),
    }


def _needed(items: list[pytest.Item]) -> set[Key]:
    """Return the lives that the tests of this session ask for."""
    needed: set[Key] = set()
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        for name in getattr(item, "fixturenames", ()):
            if name in NEEDS:
                needed |= NEEDS[name](params.get("version", ""))
    return needed


def _told(outcomes: Outcomes, kind: type[T], version: str = "") -> T:
    found = outcomes[kind, version]
    if isinstance(found, BaseException):
        raise found
    assert isinstance(found, kind)
    return found


def _recorded(kind: type[T], version: str = "") -> Callable[..., T]:
    """Make the fixture of the one life of its kind, or of its kind and version."""

    @pytest.fixture(scope="session")
    def recorded(outcomes: Outcomes) -> T:
        return _told(outcomes, kind, version)

    return recorded


@pytest.fixture(scope="session", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """A Spark version."""
    return str(request.param)


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest, needs_namespaces: None, control_plane: ControlPlane) -> Outcomes:
    """All lives of this session: what they recorded, or how they failed."""
    needed = _needed(request.session.items)
    lives = _lives(control_plane)
    return asyncio.run(live_all({key: lives[key] for key in lives if key in needed}))


@pytest.fixture(scope="session")
def record(outcomes: Outcomes, version: str) -> Record:
    """A whole life with an agent."""
    return _told(outcomes, Record, version)


@pytest.fixture(scope="session")
def alone(outcomes: Outcomes, version: str) -> Work:
    """The same life without one."""
    return _told(outcomes, Work, version)


# These are lived in one version alone.
alone_too = _recorded(Work, ONE_VERSION)
pair = _recorded(Pair)
marked = _recorded(Marked)
secure = _recorded(Secure)
hidden = _recorded(Hidden)
unheard = _recorded(Unheard)
