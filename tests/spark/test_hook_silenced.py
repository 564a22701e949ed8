"""After setLogLevel above INFO the hook is not heard, in this context and in all later ones of the JVM.

The level is log4j2's, so the JVM's: neither the stop of a context nor the start of the next one sets it back. The UI is then
found by its REST answer and parked after its close; once the level is INFO again, the line before the close is heard.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from sandbox.capture import Connection
from sandbox.changes import Routed
from sandbox.control_plane import ControlPlane
from sandbox.prompt import run_promptly
from sandbox.spark.driver import SparkDriver
from tests.spark.hook_lives import Ending, Life, life, observe, violations

VERSIONS = ("3.5.9", "4.1.4")


@dataclass(frozen=True)
class Context:
    """One context: what reached the hook while it started, the agent's status once published, and its end."""

    binding: Sequence[Connection]
    status: Mapping[str, object]
    ending: Ending


@dataclass(frozen=True)
class Recorded:
    """Three contexts of one JVM, where the Service led all through, and the agent's status at the end.

    The first is silenced while it is published, the second is silent from its start to its end, the third until it is
    published.
    """

    contexts: Sequence[Context]
    history: Sequence[Routed]
    left: Mapping[str, object]


async def status(living: Life) -> Mapping[str, object]:
    """What `status --json` says."""
    told: Mapping[str, object] = json.loads((await living.agent.command("status", "--json")).out)
    return told


async def live_through(
    living: Life, driver: SparkDriver, version: str, posts: int, level: str | None
) -> Context:
    """See the newest context published, set the log level, if any, and stop it. ``posts`` were there before it."""
    port = driver.trace.ui_port
    await living.published(port)
    await living.agent.state("published", port=port)
    binding, said = living.posts()[posts:], await status(living)
    if level is not None:
        await driver.set_log_level(level)
    return Context(binding, said, await observe(living, driver, version, "stop()"))


async def record(plane: ControlPlane, version: str) -> Recorded:
    contexts: list[Context] = []
    async with (
        life(plane) as living,
        # on 3.5 the REST answer shows the Pod's application id only where Kubernetes is the master
        living.driver(version, master=living.scene.master(version)) as driver,
    ):
        await driver.ui_bound()
        contexts.append(await live_through(living, driver, version, 0, "WARN"))
        for level in (None, "INFO"):
            posts = len(living.posts())
            await driver.new_context()
            contexts.append(await live_through(living, driver, version, posts, level))
        assert (await living.agent.command("wait", "--for", "parked")).code == 0
        return Recorded(contexts, living.history, await status(living))


@pytest.fixture(scope="module", params=VERSIONS)
def recorded(request: pytest.FixtureRequest, control_plane: ControlPlane) -> Recorded:
    return run_promptly(record(control_plane, request.param))


def test_the_service_led_to_each_bound_port_in_turn_and_to_nothing_else(recorded: Recorded) -> None:
    endings = [context.ending for context in recorded.contexts]
    led_to = [one.routes for one in recorded.history if one.routes]
    assert led_to == [{(ending.ip, ending.port)} for ending in endings]
    assert len({ending.listener.socket.cookie for ending in endings}) == len(endings)
    assert recorded.history[-1].routes == frozenset()
    assert (recorded.left["state"], recorded.left["reason"]) == ("parked", "stopped")
    assert [ending.result for ending in endings] == [499500] * len(endings)


def test_a_silent_context_is_found_by_rest_although_the_hook_is_connected(recorded: Recorded) -> None:
    heard, silent, silent_at_first = recorded.contexts
    assert (heard.status["proof"], len(heard.binding)) == ("hook", 1)
    for context in (silent, silent_at_first):
        assert context.binding == []
        assert context.status["proof"] == "rest"
    assert [context.status["hook"] for context in recorded.contexts] == ["connected"] * 3


def test_a_silenced_context_is_parked_after_its_close(recorded: Recorded) -> None:
    for ending in (context.ending for context in recorded.contexts[:2]):
        served, parked = ending.history
        assert ending.held == []
        assert served.at < ending.closed_at < parked.at
        (found,) = violations(ending.history, [ending.listener], ending.ip)
        assert found.endswith("the closing of its socket")


def test_heard_again_it_is_parked_before(recorded: Recorded) -> None:
    ending = recorded.contexts[2].ending
    assert [post.accepted for post in ending.held] == [True]
    assert ending.margin > 0
    assert violations(ending.history, [ending.listener], ending.ip) == []
