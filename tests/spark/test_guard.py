"""Under hostNetwork with the hook: who has the port of a UI after its close, and where the Service leads meanwhile.

One driver lives through it all, a context for each case, each on a port of its own that a neighbour on the node wants too.
Everything is seen from outside: sockets by the kernel's tables and events, the Service by a watch, on one clock.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from sandbox.changes import Routed
from sandbox.control_plane import ControlPlane
from sandbox.prompt import run_promptly
from sandbox.scene import Stage
from sandbox.spark.driver import SparkDriver
from sandbox.spark.portwatch import PortWatch, watch_ports
from sandbox.spark.trace import Listener
from tests.spark.hook_lives import SPARK_UID, Ending, Life, life, observe, violations
from tests.spark.neighbour import UID as NEIGHBOUR
from tests.spark.neighbour import neighbour

VERSION = "4.1.4"
SETTLE = 4.0  # s: longer than SIGTERM leaves the agent running for other reasons
LOOK_SECONDS = 30.0
FIRST_PORT = 4040


@dataclass(frozen=True)
class Kept:
    """A UI's end; all who have listened at its port, in order; and when the neighbour knew that he did (ns)."""

    ending: Ending
    listeners: Sequence[Listener]
    taken_at: int

    @property
    def owners(self) -> list[int]:
        """The uids of the listeners: the agent has that of its driver, which opens nothing else there meanwhile."""
        return [one.socket.uid for one in self.listeners]


@dataclass(frozen=True)
class Recorded:
    """``late``: the neighbour comes when the guard is there; ``early``: he has tried since before the close.

    ``leaving``: as ``late``, and the agent is told to end once its guard is there. ``history``: all through.
    """

    late: Kept
    early: Kept
    leaving: Kept
    exit_code: int
    history: Sequence[Routed]


def at_port(port: int, listeners: Mapping[str, Listener]) -> list[Listener]:
    """Who has listened at a port so far, in order."""
    found = [one for one in listeners.values() if one.socket.port == port]
    return sorted(found, key=lambda one: one.seen_at)


async def keep(
    living: Life, driver: SparkDriver, ports: PortWatch, *, early: bool = False, leave: bool = False
) -> Kept:
    """Stop the newest context, with a neighbour who gets its port in the end."""
    port = driver.trace.ui_port
    await living.published(port)
    async with neighbour(living.network, port) as other:
        if early:
            await other.begin()
        # stop() returns long after the UI has closed, and the guard is there at once
        async with asyncio.TaskGroup() as group:
            observing = group.create_task(observe(living, driver, VERSION, "stop()"))
            await ports.until(
                lambda seen: at_port(port, seen)[1:] or None, LOOK_SECONDS, f"who follows at port {port}"
            )
            if leave:
                living.agent.kill(signal.SIGTERM)
            if not early:
                await other.begin()
            taken_at = await other.listens()
        listeners = await ports.until(
            lambda seen: _up_to_the_neighbour(at_port(port, seen)), LOOK_SECONDS, f"him at port {port}"
        )
        return Kept(observing.result(), listeners, taken_at)


def _up_to_the_neighbour(listeners: list[Listener]) -> list[Listener] | None:
    return listeners if listeners[-1].socket.uid == NEIGHBOUR else None


async def record(plane: ControlPlane) -> Recorded:
    confs = [{"spark.ui.port": str(FIRST_PORT + number)} for number in range(3)]
    async with (
        life(plane, stage=Stage(host_network=True), SETTLE=f"{SETTLE:g}s") as living,
        watch_ports(living.network) as ports,
        living.driver(VERSION, conf=confs[0]) as driver,
    ):
        await driver.ui_bound()
        late = await keep(living, driver, ports)
        await driver.new_context(confs[1])
        early = await keep(living, driver, ports, early=True)
        await driver.new_context(confs[2])
        leaving = await keep(living, driver, ports, leave=True)
        return Recorded(late, early, leaving, await living.agent.exited(), living.history)


@pytest.fixture(scope="module")
def recorded(control_plane: ControlPlane) -> Recorded:
    return run_promptly(record(control_plane))


@pytest.mark.parametrize("case", ["late", "leaving"])
def test_the_agent_keeps_a_freed_port_until_it_has_settled(recorded: Recorded, case: str) -> None:
    kept: Kept = getattr(recorded, case)
    assert kept.owners == [SPARK_UID, SPARK_UID, NEIGHBOUR]
    ui, guard, _ = kept.listeners
    assert ui.socket == kept.ending.listener.socket
    assert ui.closed_at is not None
    assert guard.closed_at is not None
    assert kept.ending.empty_at < ui.closed_at < guard.closed_at
    for instant in (guard.closed_at, kept.taken_at):
        assert (instant - kept.ending.empty_at) / 1e9 >= SETTLE


def test_told_to_end_it_keeps_the_port_first_and_ends_well(recorded: Recorded) -> None:
    assert recorded.exit_code == 0


def test_a_neighbour_faster_than_the_agent_is_not_led_to(recorded: Recorded) -> None:
    """He may be: nobody can take a port in the very instant in which it is freed. Who won is left open."""
    kept = recorded.early
    assert kept.owners in ([SPARK_UID, NEIGHBOUR], [SPARK_UID, SPARK_UID, NEIGHBOUR])
    assert kept.ending.empty_at < kept.ending.closed_at
    assert kept.ending.empty_at < kept.taken_at


def test_the_service_led_to_each_ui_while_it_was_there_and_to_nothing_else(recorded: Recorded) -> None:
    endings = [kept.ending for kept in (recorded.late, recorded.early, recorded.leaving)]
    assert [one.routes for one in recorded.history if one.routes] == [
        {(ending.ip, ending.port)} for ending in endings
    ]
    assert [ending.port for ending in endings] == [FIRST_PORT, FIRST_PORT + 1, FIRST_PORT + 2]
    assert recorded.history[-1].routes == frozenset()
    assert violations(recorded.history, [ending.listener for ending in endings], endings[0].ip) == []
