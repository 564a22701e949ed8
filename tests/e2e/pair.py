"""Two drivers on the node's network that both ask for 4040, and a client that asks both of their Services all the time."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from sandbox.changes import Routed, recording
from sandbox.node.cluster import Cluster
from sandbox.node.submit import create_spark_namespace
from sandbox.spark.portwatch import watch_ports
from sandbox.spark.trace import Listener
from tests.e2e.client import Answers, Asked, asking
from tests.e2e.pages import applications, strays
from tests.e2e.scene import ROUTED_SECONDS, Ending, Plan, Scene, played_in

APPLICATIONS = "/api/v1/applications"
CONTEXT = "context:4040"
LOOK_SECONDS = 60.0
# the node has one network, on which each pair has to be alone
_NODE_NETWORK = asyncio.Lock()


@dataclass(frozen=True)
class Side:
    """One of the two: its name, which is its application's, its UIs, where its Service led, what a client got from it.

    ``uis`` are the sockets of its contexts' UIs, in order.
    """

    name: str
    uis: Sequence[Listener]
    routed: Sequence[Routed]
    asked: Sequence[Asked]
    ending: Ending

    def ports(self) -> list[int]:
        """Return the ports that the Service led to, in order."""
        return [port for step in self.routed for _, port in sorted(step.routes)]

    def shown(self) -> set[str]:
        """Return the names of the applications that the client was shown."""
        return {name for one in self.asked if one.page is not None for name in applications(one.page)}

    def strays(self) -> list[Asked]:
        """Return the requests that were answered by something else than a UI of its own."""
        return strays(self.asked, self.name, self.uis)


@dataclass(frozen=True)
class Pair:
    """Both drivers of one node."""

    first: Side
    second: Side

    @property
    def moved(self) -> int:
        """When the second's next context had the port that the first had had."""
        return self.second.uis[-1].seen_at


async def live_pair(cluster: Cluster) -> Pair:
    """The second gets 4041; the first stops; the second's next context takes the port that the first had.

    One pair after the other, however many are asked for at once.
    """
    async with _NODE_NETWORK:
        return await _live_pair(cluster)


async def _live_pair(cluster: Cluster) -> Pair:
    namespace = f"pair-{uuid.uuid4().hex[:6]}"
    await create_spark_namespace(cluster, namespace)
    async with contextlib.AsyncExitStack() as stack:
        seen = await stack.enter_async_context(recording(cluster.admin, namespace))
        ports = await stack.enter_async_context(watch_ports(cluster.network))
        first = await stack.enter_async_context(
            played_in(
                cluster, _plan("left", 0, [CONTEXT, "await:stop", "stop", "await:end"]), namespace, seen
            )
        )
        asked_first = await stack.enter_async_context(_asked_from_the_start(cluster, first))
        steps = [CONTEXT, "await:next", "stop", CONTEXT, "await:stop", "stop", "await:end"]
        await _led(first, 4040)
        second = await stack.enter_async_context(
            played_in(cluster, _plan("right", 1, steps), namespace, seen)
        )
        asked_second = await stack.enter_async_context(_asked_from_the_start(cluster, second))
        await _led(second, 4041)

        for asked in (asked_first, asked_second):
            await asked.until(_lists)
        await first.driver.steer("stop")
        # the agent keeps the port for a while, so that nobody appears behind its Service
        await ports.until(_is_free, LOOK_SECONDS, "the end of the guard of port 4040")
        await second.driver.steer("next")
        await _led(second, 4040)
        moved = time.monotonic_ns()
        await asked_second.until(lambda one: one.at > moved and _lists(one))
        await second.driver.steer("stop")
        await seen.until_routed(second.service, set(), LOOK_SECONDS)
        for scene in (first, second):
            await scene.driver.steer("end")
        endings = [await first.ended(), await second.ended()]
        # each is followed by its agent's guard, which answers nobody
        of_first, _, of_next = _listeners(ports.listeners, 4040)[:3]
        of_second = _listeners(ports.listeners, 4041)[0]
        return Pair(
            Side("left", [of_first], seen.routed(first.service), asked_first.asked, endings[0]),
            Side("right", [of_second, of_next], seen.routed(second.service), asked_second.asked, endings[1]),
        )


def _listeners(seen: Mapping[str, Listener], port: int) -> list[Listener]:
    """Return all that have listened at a port, in order."""
    return sorted((one for one in seen.values() if one.socket.port == port), key=lambda one: one.seen_at)


def _lists(asked: Asked) -> bool:
    return asked.page is not None and bool(applications(asked.page))


def _plan(name: str, number: int, steps: Sequence[str]) -> Plan:
    # what Spark declares is a port of the host here: two that declare the same could not be on one node
    conf = {
        "spark.driver.port": f"{17078 + 10 * number}",
        "spark.driver.blockManager.port": f"{17079 + 10 * number}",
        "spark.ui.port": f"{17080 + 10 * number}",
        "spark.connect.grpc.binding.port": f"{17081 + 10 * number}",
    }
    return Plan(name, steps, "hostnetwork", conf=conf)


async def _led(scene: Scene, port: int) -> None:
    await scene.seen.until(
        lambda seen: {one for _, one in seen.leads_to(scene.service)} == {port}, within=ROUTED_SECONDS
    )


@contextlib.asynccontextmanager
async def _asked_from_the_start(cluster: Cluster, scene: Scene) -> AsyncIterator[Answers]:
    """Ask a Service from the moment at which it has an address, while the block lasts."""
    every = Answers()

    async def ask() -> None:
        await scene.seen.until(lambda seen: bool(seen.of_service(scene.service)), ROUTED_SECONDS)
        host = scene.seen.of_service(scene.service)[0].object["spec"]["clusterIP"]
        async with asking(cluster, host, 4040, APPLICATIONS, every):
            await asyncio.Event().wait()

    task = asyncio.create_task(ask())
    try:
        yield every
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


def _is_free(listeners: dict[str, Listener]) -> bool | None:
    """True when 4040 has been the first one's UI, then its agent's guard, and is nobody's now; else None."""
    ends = [one.closed_at for one in _listeners(listeners, 4040)]
    return True if len(ends) > 1 and None not in ends else None
