"""How the lives of drivers and their agents are set up and watched."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sandbox.agent import AgentProcess
from sandbox.changes import Changes, recording
from sandbox.control_plane import ControlPlane
from sandbox.netns import NetworkNamespace
from sandbox.pods import create_namespace
from sandbox.scene import Scene, Stage, on_control_plane
from sandbox.spark.driver import SparkDriver
from sandbox.spark.master import LocalMaster, Master

Key = TypeVar("Key", bound=Hashable)

SPARK_UID = 185  # of Spark's own images, and of the agent in the same Pod unless told otherwise
NAME = "quarterly-report"
ROUTED_SECONDS = 90.0  # from a bound port to the slice: a REST interface that starts on a busy machine
LIVES_AT_ONCE = 2
LAST_LINES = 40


@dataclass(frozen=True)
class Watched:
    """A scene on the control plane, the driver's network, and what happens to Services and slices."""

    scene: Scene
    network: NetworkNamespace
    changes: Changes


@contextlib.asynccontextmanager
async def watched(plane: ControlPlane) -> AsyncIterator[Watched]:
    """Set a scene in a network of its own and record what happens in its namespace."""
    with NetworkNamespace.create() as network:
        async with (
            on_control_plane(plane, network) as scene,
            recording(scene.api, scene.namespace) as changes,
        ):
            yield Watched(scene, network, changes)


@contextlib.asynccontextmanager
async def watched_pair(plane: ControlPlane) -> AsyncIterator[tuple[Watched, Watched]]:
    """Set two driver Pods with hostNetwork on one node, in one namespace."""
    namespace = f"pair-{uuid.uuid4().hex[:12]}"
    await create_namespace(plane.admin, namespace)
    with NetworkNamespace.create() as network:
        async with contextlib.AsyncExitStack() as stack:
            changes = await stack.enter_async_context(recording(plane.admin, namespace))
            both = [
                await stack.enter_async_context(
                    on_control_plane(plane, network, Stage(namespace=namespace, pod=pod, host_network=True))
                )
                for pod in ("first-driver", "second-driver")
            ]
            first, second = (Watched(scene, network, changes) for scene in both)
            yield first, second


@contextlib.asynccontextmanager
async def agent_of(scene: Scene, *, uid: int = SPARK_UID) -> AsyncIterator[AgentProcess]:
    """Run the scene's agent without the log hook and wait until it looks for a UI."""
    async with scene.agent(uid=uid, HOOK="off", DRIVER_UID=str(SPARK_UID)) as agent:
        await agent.state("waiting")
        with _noting(lambda: [line.text for line in agent.lines], "the agent's log"):
            yield agent


@contextlib.asynccontextmanager
async def driver_of(
    scene: Scene,
    version: str,
    *,
    conf: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[SparkDriver]:
    """Start the scene's driver as Spark's own images run it."""
    async with SparkDriver.start(
        version=version,
        namespace=scene.network,
        master=_one_task_at_a_time(scene.master(version)),
        app_id=scene.application,
        uid=SPARK_UID,
        conf={"spark.app.name": NAME, **(conf or {})},
        env=env,
    ) as driver:
        with _noting(driver.trace.lines, "the driver's last lines"):
            yield driver


@contextlib.contextmanager
def _noting(lines: Callable[[], Sequence[str]], what: str) -> Iterator[None]:
    """Add to whatever fails inside what was logged last."""
    try:
        yield
    except Exception as error:
        error.add_note("\n".join([f"{what}:", *lines()[-LAST_LINES:]]))
        raise


def _one_task_at_a_time(master: Master) -> Master:
    # two tasks end in any order, and their log lines count them
    return LocalMaster(cores=1) if isinstance(master, LocalMaster) else master


async def live_all(
    lives: Mapping[Key, Callable[[], Awaitable[object]]],
) -> dict[Key, object]:
    """Live them, some side by side in the order given; a life that failed is its exception."""
    room = asyncio.Semaphore(LIVES_AT_ONCE)

    async def one(life: Callable[[], Awaitable[object]]) -> object:
        async with room:
            return await life()

    outcomes: Sequence[object] = await asyncio.gather(
        *(one(life) for life in lives.values()), return_exceptions=True
    )
    return dict(zip(lives, outcomes, strict=True))
