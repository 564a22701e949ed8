"""Drivers whose logging asks the agent before their UI closes, observed from outside: kernel, watch, packets.

The agent runs as the driver's uid with its own ServiceAccount; nothing here is told by it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from sandbox.agent import AgentProcess
from sandbox.capture import Capture, Connection, capture
from sandbox.changes import Changes, Routed, recording
from sandbox.control_plane import ControlPlane
from sandbox.netns import NetworkNamespace
from sandbox.scene import Scene, Stage, hooked, on_control_plane, on_stand_in
from sandbox.spark.driver import SparkDriver
from sandbox.spark.master import Master
from sandbox.spark.trace import Listener
from sandbox.standin import StandIn

T = TypeVar("T")

SPARK_UID = 185
ROUTED_SECONDS = 60.0

Way = Literal["stop()", "end", "exception", "sys.exit", "SIGTERM", "SIGKILL"]
WAYS: tuple[Way, ...] = ("stop()", "end", "exception", "sys.exit", "SIGTERM")


@dataclass
class Life:
    """A scene under observation with an agent in it; made by `life`. ``agent`` is the newest one."""

    scene: Scene
    network: NetworkNamespace
    changes: Changes
    captured: Capture
    directory: Path
    agent: AgentProcess
    agents: contextlib.AsyncExitStack = field(repr=False)

    @property
    def history(self) -> list[Routed]:
        """Where the Service has led so far."""
        return self.changes.routed(self.scene.service)

    @property
    def ip(self) -> str:
        """The Pod's address."""
        return self.scene.place.ip

    def hook_key(self) -> tuple[int, str]:
        """The hook's port and secret."""
        key = json.loads((self.directory / "hook.json").read_text())
        return key["port"], key["secret"]

    def posts(self) -> list[Connection]:
        """Every connection to the hook's port so far."""
        port, _ = self.hook_key()
        return [one for one in self.captured.connections() if one.port == port]

    async def restart(self, *, module: str = "agent", **settings: str) -> AgentProcess:
        """Run another agent on the same volume and wait until it looks for a UI; the former one must have ended."""
        await self.agent.exited()
        self.agent = await self.agents.enter_async_context(
            self.scene.agent(
                uid=SPARK_UID, directory=self.directory, module=module, env=None, **{"HOOK": "on", **settings}
            )
        )
        await self.agent.state("waiting")
        return self.agent

    async def published(self, port: int) -> int:
        """Wait until the Service leads to ``port`` of this Pod and to nothing else; return since when."""
        return await self.changes.until_routed(self.scene.service, {(self.ip, port)}, within=ROUTED_SECONDS)

    async def empty(self) -> int:
        """Wait until the Service leads to nothing; return since when."""
        return await self.changes.until_routed(self.scene.service, set(), within=ROUTED_SECONDS)

    @contextlib.asynccontextmanager
    async def driver(
        self,
        version: str,
        *,
        hook: bool = True,
        conf: Mapping[str, str] | None = None,
        master: Master | None = None,
    ) -> AsyncIterator[SparkDriver]:
        """Start a driver of this Pod, with or without the environment that lets its logging take in the hook."""
        async with SparkDriver.start(
            version=version,
            namespace=self.network,
            master=master,
            app_id=self.scene.application,
            uid=SPARK_UID,
            conf={"spark.app.name": "quarterly-report", **(conf or {})},
            env=hooked(self.directory) if hook else None,
            reads=[self.directory],
        ) as driver:
            yield driver


@contextlib.asynccontextmanager
async def life(
    server: ControlPlane | StandIn, *, stage: Stage | None = None, module: str = "agent", **settings: str
) -> AsyncIterator[Life]:
    """Set a scene on ``server`` in a network of its own, and run the agent in it with the hook on."""
    async with contextlib.AsyncExitStack() as stack:
        network = stack.enter_context(NetworkNamespace.create())
        if isinstance(server, ControlPlane):
            scene = await stack.enter_async_context(on_control_plane(server, network, stage))
        else:
            scene = await stack.enter_async_context(on_stand_in(network, server, stage))
        changes = await stack.enter_async_context(recording(scene.api, scene.namespace))
        captured = await stack.enter_async_context(capture(network))
        directory = scene.folder / "run"
        agent = await stack.enter_async_context(
            scene.agent(
                uid=SPARK_UID, directory=directory, module=module, env=None, **{"HOOK": "on", **settings}
            )
        )
        await agent.state("waiting")
        yield Life(scene, network, changes, captured, directory, agent, stack)


async def end(driver: SparkDriver, way: Way) -> None:
    """Bring the driver, or with ``stop()`` its newest context, to its end in one of the ways."""
    match way:
        case "stop()":
            await driver.stop_context()
        case "end":
            await driver.end()
        case "exception":
            await driver.throw()
        case "sys.exit":
            await driver.exit(3)
        case "SIGTERM":
            driver.kill(signal.SIGTERM)
            await driver.exited()
        case "SIGKILL":
            driver.kill(signal.SIGKILL)
            await driver.exited()


@dataclass(frozen=True)
class Ending:
    """One UI from its publication to its end. Instants are CLOCK_MONOTONIC in ns.

    ``asked_for`` is when the end was asked for and ``done_at`` when stop() returned (0 where it is not stop()).
    ``held`` are the connections to the hook's port since the publication: what the driver waited for.
    """

    version: str
    way: Way
    port: int
    published_at: int
    asked_for: int
    empty_at: int
    closed_at: int
    done_at: int
    result: object
    held: Sequence[Connection]
    history: Sequence[Routed]
    listener: Listener
    ip: str

    @property
    def margin(self) -> int:
        """How long before the port's closing the Service led to nothing, in ns; negative: after it."""
        return self.closed_at - self.empty_at


async def observe(living: Life, driver: SparkDriver, version: str, way: Way) -> Ending:
    """Wait for the driver's newest UI to be published, compute, end it, and tell how that went."""
    await driver.ui_bound()
    context = driver.trace.context
    listener = context.listener
    if listener is None:
        raise LookupError("the UI's listening socket has not been seen")
    port = context.port
    published_at = await living.published(port)
    # the log line comes after the slice: from then on the agent has nothing left to do
    await living.agent.state("published", port=port)
    result = await driver.result()
    posts = len(living.posts())
    before = len(living.history) - 1
    await end(driver, way)
    closed_at = await driver.ui_closed()
    empty_at = await living.empty()
    return Ending(
        version=version,
        way=way,
        port=port,
        published_at=published_at,
        asked_for=context.stop_requested_at or 0,
        empty_at=empty_at,
        closed_at=closed_at,
        done_at=context.stopped_at or 0,
        result=result,
        held=living.posts()[posts:],
        history=living.history[before:],
        listener=listener,
        ip=living.ip,
    )


def violations(history: Sequence[Routed], listeners: Sequence[Listener], ip: str) -> list[str]:
    """Say when a Service led anywhere but to one of ``listeners``, and from its bind until before its closing.

    ``history`` in its order; the last entry stands until now. The checker of "never the wrong UI" and "gone before
    it is gone": an empty list is the proof.
    """
    found = []
    for now, following in itertools.zip_longest(history, history[1:]):
        for address, port in now.routes:
            until = None if following is None else following.at
            opened = [one for one in listeners if one.socket.port == port and one.seen_at <= now.at]
            if address != ip or not opened:
                found.append(f"led to {address}:{port}, where no UI of this driver listened")
                continue
            closed_at = max(opened, key=lambda one: one.seen_at).closed_at
            if closed_at is not None and (until is None or until >= closed_at):
                late = "ever since" if until is None else f"until {(until - closed_at) / 1e6:.1f} ms after"
                found.append(f"led to port {port} {late} the closing of its socket")
    return found
