"""Lives whose agent is lost before the context stops: kubelet holds it back, or does not start it again at all."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.apiclient import Object
from sandbox.capture import Connection, capture
from sandbox.changes import Change, Route, Routed
from sandbox.node.cluster import Cluster, KubectlError
from sandbox.node.containers import container_status, terminated
from sandbox.node.templates import AGENT_CONTAINER
from tests.e2e.cut_short import hook_of, kill_agent, until_restarted
from tests.e2e.lives import STEPS
from tests.e2e.scene import Ending, Plan, Scene, played

BACK_OFF = "CrashLoopBackOff"
# More than the agent may have, taken by processes each smaller than the agent, which the kernel therefore ends first.
# Written to, so that it is really taken.
HOARD = """
import os, time
for _ in range(16):
    if os.fork() == 0:
        taken = os.urandom(12 << 20)
        time.sleep(60)
time.sleep(60)
"""


@dataclass(frozen=True)
class Lost:
    """A job whose agent the kernel ended for its memory, and whose kubelet then would not start it again in time.

    ``reasons`` are how the kubelet told the ends of the agent's lives. ``route`` is where the Service led while the agent
    ran, ``routed`` all that it led to, ``stopping`` when the job was told to stop its context. ``posts`` are the
    connections from then on to the hook's port.
    """

    reasons: Sequence[str]
    waiting: str
    route: Route
    routed: Sequence[Routed]
    stopping: int
    posts: Sequence[Connection]
    ending: Ending


async def live_lost(cluster: Cluster) -> Lost:
    """Let the agent be ended twice, and the context stop meanwhile."""
    # the job ends by itself: kubelet tries again after ten seconds
    steps = ["context", "result", "await:stop", "stop"]
    async with played(cluster, Plan("lost", steps, "native")) as scene:
        address = await scene.running()
        port = await scene.routed(address)
        await scene.driver.until_step("result")
        hook = _hook_port(await hook_of(scene))
        await _exhaust(scene)
        reasons = [_last_end(await until_restarted(scene, 1))]
        # a Pod is ready again once its sidecar is
        await scene.routed(address)
        await kill_agent(scene)
        pod = await scene.driver.until_pod(lambda pod: _waiting_for(pod) == BACK_OFF)
        reasons.append(_last_end(pod))
        await scene.seen.until_routed(scene.service, set())
        with cluster.pod_network(address) as network:
            async with capture(network) as captured:
                stopping = time.monotonic_ns()
                await scene.driver.steer("stop")
                await scene.driver.until_step("stop")
                connections = captured.connections()
        return Lost(
            reasons=reasons,
            waiting=_waiting_for(pod),
            route=(address, port),
            routed=scene.seen.routed(scene.service),
            stopping=stopping,
            posts=[one for one in connections if one.port == hook],
            ending=await scene.ended(),
        )


@dataclass(frozen=True)
class Returned:
    """A job whose context stopped while kubelet held the agent back, and which went on until the agent was there again.

    ``route``, ``routed`` and ``stopping`` are as for `Lost`; ``ready`` is when the Pod was Ready again.
    """

    route: Route
    routed: Sequence[Routed]
    stopping: int
    ready: int
    services: Sequence[Change]
    ending: Ending


async def live_returned(cluster: Cluster) -> Returned:
    """Kill the agent twice, stop the context meanwhile, and wait for its third life."""
    async with played(cluster, Plan("returned", STEPS, "native")) as scene:
        address = await scene.running()
        port = await scene.routed(address)
        await scene.driver.until_step("result")
        await kill_agent(scene)
        await until_restarted(scene, 1)
        await scene.routed(address)
        await kill_agent(scene)
        await scene.driver.until_pod(lambda pod: _waiting_for(pod) == BACK_OFF)
        await scene.seen.until_routed(scene.service, set())
        stopping = time.monotonic_ns()
        await scene.driver.steer("stop")
        await scene.driver.until_step("stop")
        await until_restarted(scene, 2)
        await scene.driver.until_pod(_is_ready)
        ready = time.monotonic_ns()
        # what the controller makes of a Pod that is Ready again is written before what it makes of the end
        await scene.driver.steer("end")
        ending = await scene.ended()
        await scene.seen.until(lambda seen: seen.of_service(scene.service)[-1].type == "DELETED")
        return Returned(
            route=(address, port),
            routed=scene.seen.routed(scene.service),
            stopping=stopping,
            ready=ready,
            services=scene.seen.of_service(scene.service),
            ending=ending,
        )


@dataclass(frozen=True)
class Killed:
    """A job beside an ordinary second container that was killed by SIGKILL.

    ``route``, ``routed`` and ``stopping`` are as for `Lost`; ``agent_status`` and ``restarts`` are the agent's.
    """

    route: Route
    routed: Sequence[Routed]
    stopping: int
    agent_status: int
    restarts: int
    ending: Ending


async def live_killed(cluster: Cluster) -> Killed:
    """Kill the agent, then stop the context."""
    async with played(cluster, Plan("killed", STEPS, "plain")) as scene:
        address = await scene.running()
        port = await scene.routed(address)
        await scene.driver.until_step("result")
        await kill_agent(scene)
        await scene.seen.until_routed(scene.service, set())
        stopping = time.monotonic_ns()
        for step in ("stop", "end"):
            await scene.driver.steer(step)
        pod = await scene.driver.until("Succeeded", "Failed")
        return Killed(
            route=(address, port),
            routed=scene.seen.routed(scene.service),
            stopping=stopping,
            agent_status=terminated(pod, AGENT_CONTAINER)["exitCode"],
            restarts=container_status(pod, AGENT_CONTAINER)["restartCount"],
            ending=await scene.ended(),
        )


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _hook_port(hook: str) -> int:
    """Return the port to which the hook's file makes the driver post."""
    ports = {int(port) for port in re.findall(r'url="http://127\.0\.0\.1:(\d+)/"', hook)}
    (port,) = ports
    return port


async def _exhaust(scene: Scene) -> None:
    """Take all the memory that the agent's container may have, so that the kernel ends the agent."""
    # the command ends with the container
    with contextlib.suppress(KubectlError):
        argv = ["python3", "-c", HOARD]
        await scene.cluster.execute(scene.namespace, scene.driver.pod, AGENT_CONTAINER, argv)


def _last_end(pod: Object) -> str:
    return str(container_status(pod, AGENT_CONTAINER)["lastState"]["terminated"]["reason"])


def _waiting_for(pod: Object) -> str:
    return str(container_status(pod, AGENT_CONTAINER).get("state", {}).get("waiting", {}).get("reason", ""))
