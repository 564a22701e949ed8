"""What is told: State and Status as computed from all that is known."""

from __future__ import annotations

import pytest

from agent.decide.desired import fold, initial
from agent.decide.status import state, status
from agent.model import (
    Closed,
    Draining,
    DriverEnded,
    Fact,
    HookReady,
    HookStopping,
    Misconfigured,
    Observed,
    State,
    Taken,
    Trouble,
    World,
)
from tests.support.make import APP, answered, bound, ours, scan, settings

ADOPT = Trouble("adopt", "Service ui selects app=x", "let its selector match")
SETTINGS = Trouble("settings", "SPARK_UI_AGENT_EXPOSE is '0'", "correct it")


def world_of(*facts: Fact) -> World:
    world = initial()
    for fact in facts:
        world = fold(world, fact, settings())
    return world


@pytest.mark.parametrize(
    ("facts", "expected", "reason"),
    [
        pytest.param([], State.WAITING, "searching", id="at first"),
        pytest.param([Observed(0, routed=False)], State.WAITING, "searching", id="nothing found yet"),
        pytest.param([bound(4040)], State.WAITING, "publishing", id="proven, not written yet"),
        pytest.param(
            [bound(4040), Observed(0, routed=False)], State.WAITING, "publishing", id="an older number"
        ),
        pytest.param([bound(4040), Observed(1, routed=True)], State.PUBLISHED, "", id="written"),
        pytest.param(
            [bound(4040), Observed(1, routed=True, elsewhere=True)],
            State.WAITING,
            "publishing",
            id="written, endpoints lead to a former port",
        ),
        pytest.param(
            [bound(4040), Observed(1, routed=False, blocked=ADOPT)], State.BLOCKED, "adopt", id="refused"
        ),
        pytest.param(
            [Observed(0, routed=True, blocked=ADOPT)], State.BLOCKED, "adopt", id="refused while searching"
        ),
        pytest.param(
            [bound(4040), Observed(0, routed=False, blocked=ADOPT)],
            State.WAITING,
            "publishing",
            id="a trouble of an older number is over",
        ),
        pytest.param(
            [bound(4040), Observed(1, routed=True), HookStopping(7)],
            State.DRAINING,
            "stopped",
            id="about to stop, the Service not yet known to lead nowhere",
        ),
        pytest.param(
            [bound(4040), Observed(1, routed=True), Closed(4040), Observed(2, routed=False)],
            State.PARKED,
            "stopped",
            id="stopped and gone",
        ),
        pytest.param(
            [scan(4040), answered(4040, Taken.FILTERED)], State.BLOCKED, "filtered", id="someone must act"
        ),
        pytest.param(
            [scan(4040), answered(4040, Taken.STARTING)], State.WAITING, "starting", id="it will pass"
        ),
        pytest.param([Misconfigured(SETTINGS)], State.BLOCKED, "settings", id="bad settings"),
        pytest.param([bound(4040), Draining("SIGTERM")], State.DRAINING, "draining", id="told to go"),
        pytest.param(
            [bound(4040), Draining("SIGTERM"), Observed(2, routed=True)],
            State.DRAINING,
            "draining",
            id="the slices still hold us",
        ),
        pytest.param(
            [bound(4040), Draining("SIGTERM"), Observed(2, routed=False)],
            State.DONE,
            "draining",
            id="told to go and gone",
        ),
        pytest.param(
            [bound(4040), DriverEnded("Completed"), Observed(2, routed=False)],
            State.DONE,
            "driver-ended",
            id="the driver is over",
        ),
    ],
)
def test_state_and_reason(facts: list[Fact], expected: State, reason: str) -> None:
    world = world_of(*facts)
    told = status(world, settings())

    assert state(world) is expected
    assert told.state is expected
    assert told.reason == reason


def test_a_published_ui_is_told_whole() -> None:
    told = status(
        world_of(HookReady(), scan(4440), ours(4440, tls=True), Observed(1, routed=True, service="found")),
        settings(),
    )

    assert (told.port, told.scheme, told.application, told.proof) == (4440, "https", APP, "rest")
    assert (told.hook, told.service, told.found, told.remedy) == ("absent", "found", "", "")


def test_without_a_ui_no_port_is_told_but_the_application_and_the_service_that_was_asked_for() -> None:
    told = status(world_of(), settings())

    assert (told.port, told.scheme, told.proof) == (None, None, None)
    assert (told.application, told.service, told.hook) == (APP, "ui", "off")


def test_an_unknown_application_is_none() -> None:
    assert status(world_of(), settings(app="")).application is None


def test_a_trouble_of_the_service_is_told_with_its_remedy() -> None:
    told = status(world_of(bound(4040), Observed(1, routed=False, blocked=ADOPT)), settings())

    assert (told.found, told.remedy) == (ADOPT.found, ADOPT.remedy)
