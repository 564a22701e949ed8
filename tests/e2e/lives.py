"""Lives of jobs that end well. Each is recorded here; the tests look at the records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.apiclient import Object
from sandbox.changes import Change, Routed
from sandbox.node.cluster import Cluster
from sandbox.node.containers import main_process, started_at
from sandbox.node.templates import AGENT_CONTAINER, agent_container
from sandbox.page import Page
from sandbox.pods import DRIVER_CONTAINER
from sandbox.spark.portwatch import PortWatch, watch_ports
from sandbox.spark.trace import Listener
from tests.e2e.scene import Ending, Plan, Scene, played

CLOSE_SECONDS = 60.0
# with a hundredth of a CPU the first steps take half a minute on a free core, and so do the imports after them
SLOW_SECONDS = 240.0
# what the agent writes for the driver, with the secret in it, and where the driver sees it
HOOK_FILE = "/run/spark-ui-agent/hook.xml"
# prints each module that the agent loads without bytecode that is taken as it is
UNCOMPILED = """
import sys, agent.app, agent.commands.start, agent.act.kubeclient as client
from pathlib import Path
client.load_client()
for name, module in sorted(sys.modules.items()):
    spec = getattr(module, "__spec__", None)
    if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        bytecode = Path(spec.cached)
        if not bytecode.is_file() or int.from_bytes(bytecode.read_bytes()[4:8], "little") != 1:
            print(name)
"""
STEPS = ("context", "result", "await:stop", "stop", "await:end")
EXPOSED = 4040


@dataclass(frozen=True)
class Whole:
    """A job from submit to the end of its Pod. Instants are CLOCK_MONOTONIC in nanoseconds.

    ``parked`` is when the last route was gone, ``closed`` when the UI's socket was. ``lingered``: seconds from the
    end of the driver's process to that of the Pod. ``submit_status`` is spark-submit's own exit status.
    ``uncompiled`` are the modules that the agent's interpreter might have to compile at each start.
    """

    name: str
    address: str
    port: int
    first: Page
    page: Page
    parked: int
    closed: int
    routed: Sequence[Routed]
    ending: Ending
    lingered: float
    submit_status: int
    services: Sequence[Change]
    uncompiled: Sequence[str]


async def live_whole(cluster: Cluster, name: str, variant: str) -> Whole:
    """Serve a page, compute, stop the context, then end."""
    async with played(cluster, Plan(name, STEPS, variant)) as scene:
        address = await scene.running()
        port = await scene.routed(address)
        host = (await scene.kept())["spec"]["clusterIP"]
        first = await cluster.first_page(host, EXPOSED)
        await scene.driver.until_step("result")
        printed = await cluster.execute(
            scene.namespace,
            scene.driver.pod,
            AGENT_CONTAINER,
            ["/opt/spark-ui-agent/bin/python", "-c", UNCOMPILED],
        )
        page = await cluster.fetch(host, EXPOSED, "/jobs/")
        parked, closed = await stopping(scene, address, port)
        await cluster.until_refused(host, EXPOSED)
        lingered = await end(scene)
        status = await scene.driver.finished()
        await scene.seen.until(lambda seen: seen.of_service(scene.service)[-1].type == "DELETED")
        return Whole(
            name=name,
            address=address,
            port=port,
            first=first,
            page=page,
            parked=parked,
            closed=closed,
            routed=scene.seen.routed(scene.service),
            ending=await scene.ended(),
            lingered=lingered,
            submit_status=status,
            services=scene.seen.of_service(scene.service),
            uncompiled=printed.split(),
        )


@dataclass(frozen=True)
class Alone:
    """The same job without the agent."""

    ending: Ending
    lingered: float
    submit_status: int


async def live_alone(cluster: Cluster) -> Alone:
    """Compute, stop the context, then end."""
    async with played(cluster, Plan("alone", STEPS)) as scene:
        await scene.driver.until_step("result")
        await scene.driver.steer("stop")
        await scene.driver.until_step("stop")
        lingered = await end(scene)
        return Alone(await scene.ended(), lingered, await scene.driver.finished())


async def end(scene: Scene) -> float:
    """Let a job go on to its end; return for how long its Pod outlived the driver, in seconds."""
    lingering = asyncio.create_task(scene.lingering())
    await scene.driver.steer("end")
    return await lingering


def epoch() -> float:
    """Return what turns CLOCK_MONOTONIC into seconds of the epoch."""
    return time.time() - time.monotonic()


@dataclass(frozen=True)
class Worked:
    """A job with an executor."""

    ending: Ending
    routed: Sequence[Routed]


async def live_worked(cluster: Cluster) -> Worked:
    """Compute on an executor."""
    steps = ["context", "executors:1", "result", "stop"]
    async with played(cluster, Plan("worked", steps, "native", executors=1)) as scene:
        return Worked(await scene.ended(), scene.seen.routed(scene.service))


@dataclass(frozen=True)
class Slow:
    """A job whose agent gets a hundredth of a CPU. Instants are seconds of the epoch.

    ``written`` is when the hook's file stood, ``started`` when the driver's process was.
    """

    written: float
    started: float
    log: Sequence[str]
    ending: Ending


async def live_slow(cluster: Cluster) -> Slow:
    """Publish in the end, then stop the context."""

    def throttle(pod: Object) -> None:
        agent_container(pod)["resources"]["limits"]["cpu"] = "10m"

    async with played(cluster, Plan("slow", STEPS, "native", throttle)) as scene:
        address = await scene.running(within=SLOW_SECONDS)
        pod = await scene.driver.until("Running")
        started = started_at(main_process(pod, DRIVER_CONTAINER)) + epoch()
        await scene.driver.until_step("result")
        await scene.routed(address, within=SLOW_SECONDS)
        argv = ["stat", "--format=%.9Y", HOOK_FILE]
        written = await cluster.execute(scene.namespace, scene.driver.pod, DRIVER_CONTAINER, argv)
        for step in ("stop", "end"):
            await scene.driver.steer(step)
        ending = await scene.ended()
        return Slow(float(written), started, await scene.agent_log(), ending)


async def stopping(scene: Scene, address: str, port: int) -> tuple[int, int]:
    """Let a job stop its context; return when its Service led nowhere, and when the UI's socket was closed.

    Both are CLOCK_MONOTONIC in nanoseconds.
    """
    with scene.cluster.pod_network(address) as network:
        async with watch_ports(network) as ports:
            await scene.driver.steer("stop")
            closed = await closing(ports, port)
    return await scene.seen.until_routed(scene.service, set()), closed


def _closed(ports: dict[str, Listener], port: int) -> int | None:
    return next((one.closed_at for one in ports.values() if one.socket.port == port and one.closed_at), None)


async def closing(ports: PortWatch, port: int) -> int:
    """Wait until the listener of ``port`` is closed; return when it was."""
    return await ports.until(lambda seen: _closed(seen, port), CLOSE_SECONDS, f"the close of port {port}")
