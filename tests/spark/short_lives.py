"""Lives that show one thing each."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.tell.client import ask
from sandbox import launch
from sandbox.agent import AgentProcess, Line
from sandbox.capture import Connection, capture
from sandbox.changes import Changes
from sandbox.control_plane import ControlPlane
from sandbox.netns import NetworkNamespace
from sandbox.page import Page, fetch
from sandbox.scene import on_stand_in
from sandbox.spark.driver import SparkDriver
from sandbox.spark.keystore import write_keystore
from sandbox.spark.portwatch import watch_ports
from sandbox.spark.trace import Listener, Trace
from sandbox.standin import Silence, StandIn
from tests.spark.lives import ROUTED_SECONDS, SPARK_UID, Watched, agent_of, driver_of, watched, watched_pair

VERSION = "4.1.4"
# The agent of a Pod has the driver's uid. Here it has another one, told the driver's, since whose connection it is
# can be told by the uid alone: with one uid for both, the driver's own connections would count as the agent's.
MARKED_UID = 186
PROBE_SECONDS = 10.0
LOOK_SECONDS = 60.0
LOOK_AGAIN = 0.2
RPC_PROBE = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) as client:
    client.sendall(b"GET /api/v1/applications HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    client.shutdown(socket.SHUT_WR)
    client.settimeout(5)
    client.recv(100)
"""


@dataclass(frozen=True)
class Marked:
    """A life under a packet capture, up to the stop of the context; then a probe of RPC under the agent's uid.

    ``sources`` are the addresses of that uid's connections, ``api`` is the port of its way to the API server.
    """

    trace: Trace
    sources: Sequence[str]
    api: int
    published_port: object
    before: Sequence[Connection]
    after: Sequence[Connection]


async def live_marked(plane: ControlPlane) -> Marked:
    """Publish, compute, be captured; then plant the probe."""
    async with watched(plane) as seen, capture(seen.network) as captured:
        scene = seen.scene
        sources = seen.network.mark_uid(MARKED_UID)
        async with agent_of(scene, uid=MARKED_UID) as agent, driver_of(scene, VERSION) as driver:
            await driver.ui_bound()
            published = await agent.state("published", ROUTED_SECONDS)
            await driver.result()
            before = captured.connections()
            await _probe_rpc(seen, driver)
            return Marked(
                trace=driver.trace,
                sources=sources,
                api=scene.port_inside,
                published_port=published.fields["port"],
                before=before,
                after=captured.connections(),
            )


async def _probe_rpc(seen: Watched, driver: SparkDriver) -> None:
    process = await seen.network.popen(
        [sys.executable, "-I", "-c", RPC_PROBE, seen.scene.place.ip, str(driver.trace.context.rpc)],
        env={},
        uid=MARKED_UID,
    )
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await process.wait()
    finally:
        await launch.end(process)


@dataclass(frozen=True)
class Secure:
    """A UI with TLS: ``port`` serves it, ``redirectors`` only point there. ``page`` came from the published port."""

    port: int
    redirectors: frozenset[int]
    published: Line
    changes: Changes
    service: str
    ip: str
    page: Page
    redirected: Sequence[Page]


async def live_secure(plane: ControlPlane) -> Secure:
    """Publish a UI with TLS."""
    with tempfile.TemporaryDirectory(prefix="keystore-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        conf = write_keystore(folder / "ui.p12")
        (folder / "ui.p12").chmod(0o644)
        async with (
            watched(plane) as seen,
            agent_of(seen.scene) as agent,
            driver_of(seen.scene, VERSION, conf=conf) as driver,
        ):
            scene, port = seen.scene, await driver.ui_bound()
            await seen.changes.until_routed(scene.service, {(scene.place.ip, port)}, ROUTED_SECONDS)
            published = await agent.state("published")
            redirectors = _web_servers(driver.trace) - {port}
            page = await fetch(seen.network, port, "/jobs/", host=scene.place.ip, scheme="https")
            redirected = [await fetch(seen.network, one, "/jobs/") for one in redirectors]
            await driver.stop_context()
            await seen.changes.until_routed(scene.service, set())
            await agent.terminate()
            return Secure(
                port, redirectors, published, seen.changes, scene.service, scene.place.ip, page, redirected
            )


def _web_servers(trace: Trace) -> frozenset[int]:
    """Return the ports of Jetty, which alone has so short a backlog and listens beyond the loopback."""
    return frozenset(
        one.socket.port
        for one in trace.listeners.values()
        if one.socket.uid == SPARK_UID and one.socket.backlog <= 8 and "127.0.0.1" not in one.socket.address
    )


@dataclass(frozen=True)
class Hidden:
    """A UI that listens on the loopback alone. ``status`` and ``discovered`` are the running agent's answers."""

    port: int
    changes: Changes
    service: str
    status: dict[str, object]
    discovered: dict[str, object]
    connections: Sequence[Connection]
    exit_code: int


async def live_hidden(plane: ControlPlane) -> Hidden:
    """Start a driver with SPARK_LOCAL_IP=127.0.0.1 and let it work."""
    async with watched(plane) as seen, capture(seen.network) as captured, agent_of(seen.scene) as agent:
        env, conf = {"SPARK_LOCAL_IP": "127.0.0.1"}, {"spark.ui.port": "4040"}
        async with driver_of(seen.scene, VERSION, env=env, conf=conf) as driver:
            port = await driver.ui_bound()
            await agent.state("blocked", reason="loopback")
            await driver.result()
            discovered = await _asked(agent, "discover")
            return Hidden(
                port=port,
                changes=seen.changes,
                service=seen.scene.service,
                status=await _asked(agent, "status"),
                discovered=discovered,
                connections=[one for one in captured.connections() if one.port == port],
                exit_code=await agent.terminate(),
            )


async def _asked(agent: AgentProcess, command: str) -> dict[str, object]:
    return await asyncio.to_thread(ask, agent.directory / "agent.sock", command, PROBE_SECONDS)


async def _until_judged(agent: AgentProcess, port: int) -> None:
    """Ask the agent until it takes a port's UI for its own or for another application's."""
    async with asyncio.timeout(LOOK_SECONDS):
        while True:
            listed = (await _asked(agent, "discover"))["listeners"]
            for entry in listed if isinstance(listed, list) else []:
                if entry["port"] == port and entry["taken"] in ("foreign", "ours"):
                    return
            await asyncio.sleep(LOOK_AGAIN)


@dataclass(frozen=True)
class Unheard:
    """A life beside an API server that takes every connection and never answers."""

    trace: Trace
    result: object
    driver_exit: int
    asked: int
    log: Sequence[Line]
    exit_code: int


async def live_unheard() -> Unheard:
    """Do a whole job while the agent gets no answer to anything."""
    with NetworkNamespace.create() as network:
        async with StandIn.start(tls=True) as stand_in, on_stand_in(network, stand_in) as scene:
            stand_in.faults.plant(Silence())
            before = len(stand_in.requests)
            async with agent_of(scene) as agent, driver_of(scene, VERSION) as driver:
                await driver.ui_bound()
                await agent.state("waiting", ROUTED_SECONDS, reason="publishing")
                result = await driver.result()
                await driver.stop_context()
                driver_exit = await driver.end()
                code = await agent.terminate()
                asked = len(stand_in.requests) - before
                return Unheard(driver.trace, result, driver_exit, asked, tuple(agent.lines), code)


@dataclass(frozen=True)
class Side:
    """One of two drivers on a node. ``shown`` is the id that the page behind its Service names."""

    application: str
    service: str
    trace: Trace
    shown: str
    exit_code: int


@dataclass(frozen=True)
class Pair:
    """Two drivers that both asked for 4040 on one node, and what their two Services did."""

    ip: str
    first: Side
    second: Side
    changes: Changes


async def live_pair(plane: ControlPlane) -> Pair:
    """The second gets 4041; the first stops; the second's next context takes the port that the first had."""
    conf = {"spark.ui.port": "4040"}
    async with contextlib.AsyncExitStack() as stack:
        one, other = await stack.enter_async_context(watched_pair(plane))
        ports = await stack.enter_async_context(watch_ports(one.network))
        changes, ip = one.changes, one.scene.place.ip
        agents = [await stack.enter_async_context(agent_of(pod.scene)) for pod in (one, other)]

        async def led(pod: Watched, port: int) -> None:
            await changes.until(
                lambda seen: (ip, port) in seen.leads_to(pod.scene.service), within=ROUTED_SECONDS
            )

        async def left(pod: Watched, port: int) -> None:
            await changes.until(lambda seen: (ip, port) not in seen.leads_to(pod.scene.service))

        first = await stack.enter_async_context(driver_of(one.scene, VERSION, conf=conf))
        await first.ui_bound()
        await led(one, 4040)
        second = await stack.enter_async_context(driver_of(other.scene, VERSION, conf=conf))
        await second.ui_bound()
        await led(other, 4041)
        shown = await first.rest_id(), await second.rest_id()

        await first.stop_context()
        await left(one, 4040)
        await second.stop_context()
        await left(other, 4041)
        # the first's agent keeps the port for a while, so that nobody appears behind its Service
        await ports.until(_free_4040, LOOK_SECONDS, "the end of the guard of port 4040")
        await second.new_context(conf)
        await led(other, 4040)
        await _until_judged(agents[0], 4040)

        codes = [await agent.terminate() for agent in agents]
        await left(other, 4040)
        sides = [
            Side(pod.scene.application, pod.scene.service, driver.trace, name, code)
            for pod, driver, name, code in zip((one, other), (first, second), shown, codes, strict=True)
        ]
        return Pair(ip, sides[0], sides[1], changes)


def _free_4040(listeners: Mapping[str, Listener]) -> bool | None:
    taken = any(one.socket.port == 4040 and one.closed_at is None for one in listeners.values())
    return None if taken else True
