"""Many UIs behind one Service: contexts one after another in one JVM, and two JVMs of a Pod at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from sandbox.changes import Routed
from sandbox.control_plane import ControlPlane
from sandbox.prompt import run_promptly
from sandbox.spark.trace import Listener
from tests.spark.hook_lives import Ending, life, observe, violations

VERSION = "4.1.4"
CONTEXTS = 10
FIXED = "4040"


@dataclass(frozen=True)
class Recorded:
    """Where the Service led, all through; and the UIs there were."""

    history: Sequence[Routed]
    listeners: Sequence[Listener]
    ip: str

    @property
    def ports(self) -> list[int | None]:
        """The ports to which the Service led one after another, None for nothing."""
        return [next((port for _, port in one.routes), None) for one in self.history]


async def record_contexts(plane: ControlPlane) -> tuple[Recorded, list[Ending]]:
    endings = []
    async with life(plane) as living, living.driver(VERSION, conf={"spark.ui.port": FIXED}) as driver:
        for number in range(2 * CONTEXTS):
            if number:
                await driver.new_context({"spark.ui.port": FIXED if number < CONTEXTS else "0"})
            endings.append(await observe(living, driver, VERSION, "stop()"))
        listeners = [ending.listener for ending in endings]
        return Recorded(living.history, listeners, living.ip), endings


@pytest.fixture(scope="module")
def contexts(control_plane: ControlPlane) -> tuple[Recorded, list[Ending]]:
    """Ten contexts on the same port, then ten on random ones, in one JVM."""
    return run_promptly(record_contexts(control_plane))


def test_each_context_is_published_and_parked(contexts: tuple[Recorded, list[Ending]]) -> None:
    recorded, endings = contexts
    bound = [ending.port for ending in endings]
    assert bound[:CONTEXTS] == [int(FIXED)] * CONTEXTS
    assert len(set(bound[CONTEXTS:])) > 1
    led_to = [port for port in recorded.ports if port is not None]
    assert led_to == bound
    assert recorded.ports[-1] is None
    assert violations(recorded.history, recorded.listeners, recorded.ip) == []


def test_each_context_is_asked_for_once(contexts: tuple[Recorded, list[Ending]]) -> None:
    _, endings = contexts
    assert [len(ending.held) for ending in endings] == [1] * (2 * CONTEXTS)
    assert all(ending.margin > 0 for ending in endings)


async def record_two(plane: ControlPlane) -> tuple[Recorded, list[int]]:
    """Two JVMs: what the Service is to lead to one after another is the second of what comes back."""
    async with life(plane) as living, living.driver(VERSION) as elder:
        first = await elder.ui_bound()
        await living.published(first)
        async with living.driver(VERSION, conf={"spark.ui.port": FIXED}) as younger:
            second = await younger.ui_bound()
            await living.published(second)  # the newest
            await younger.stop_context()
            await living.published(first)  # which is still there
            await younger.new_context({"spark.ui.port": "0"})
            third = younger.trace.ui_port
            await living.published(third)
            await elder.stop_context()
            await elder.ui_closed()
            await younger.exit(3)
            await younger.ui_closed()
            await living.empty()
            contexts = [*elder.trace.contexts, *younger.trace.contexts]
        listeners = [context.listener for context in contexts if context.listener is not None]
        return Recorded(living.history, listeners, living.ip), [first, second, first, third]


def test_two_jvms_do_not_mix(control_plane: ControlPlane) -> None:
    recorded, wanted = run_promptly(record_two(control_plane))
    assert [port for port in recorded.ports if port is not None] == wanted
    assert recorded.ports[-1] is None
    assert len(recorded.listeners) == 3
    assert violations(recorded.history, recorded.listeners, recorded.ip) == []
