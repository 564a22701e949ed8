"""A life in which the agent is killed and started again, and what other such lives need."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.apiclient import Object
from sandbox.changes import Change, Changes, Route, Routed
from sandbox.node.cluster import Cluster
from sandbox.node.containers import container_status, is_running, main_process
from sandbox.node.templates import AGENT_CONTAINER
from sandbox.page import Page
from sandbox.pods import DRIVER_CONTAINER
from sandbox.services import services
from tests.e2e.lives import HOOK_FILE, STEPS, end, stopping
from tests.e2e.scene import Ending, Plan, Scene, played

# the only key of a parked Service's selector
PARKED = "spark-ui-agent/parked"
# an address that nobody has (RFC 5737)
BALANCER = "192.0.2.40"


@dataclass(frozen=True)
class Restarted:
    """A job whose agent was killed by SIGKILL (at ``killed``) when its Service had got a load balancer's address.

    ``services`` are the Service's events from then on to the close of the UI. ``hooks`` are the hook's file before and
    after, ``pages`` come from the node's port.
    """

    killed: int
    restarts: int
    hooks: tuple[str, str]
    log: Sequence[str]
    route: Route
    pages: tuple[Page, Page]
    parked: int
    closed: int
    routed: Sequence[Routed]
    services: Sequence[Change]
    ending: Ending


async def live_restarted(cluster: Cluster) -> Restarted:
    """Publish on a load balancer, kill the agent, then stop the context."""
    async with played(cluster, Plan("restarted", STEPS, "overlays/load-balancer")) as scene:
        address = await scene.running()
        port = await scene.routed(address)
        kept = await scene.kept()
        node_port, epoch = kept["spec"]["ports"][0]["nodePort"], _epoch_of(kept)
        await scene.driver.until_step("result")
        hook = await hook_of(scene)
        balanced = await _balanced(scene)
        before = await cluster.first_page(cluster.network.address, node_port, "/jobs/")

        killed = time.monotonic_ns()
        await kill_agent(scene)
        await until_restarted(scene, 1)
        # the first write of a new life, which makes whatever the former one had under way fail
        await scene.seen.until(lambda seen: _epoch_of(seen.of_service(scene.service)[-1].object) != epoch)
        # a Pod is not ready while one of its sidecars is started again: the slice lost its address for that time
        await scene.routed(address)
        after = await cluster.first_page(cluster.network.address, node_port, "/jobs/")
        hook_after = await hook_of(scene)
        parked, closed = await stopping(scene, address, port)
        log = await scene.agent_log()
        kept_since = [one for one in scene.seen.of_service(scene.service) if one.at >= balanced]
        await end(scene)
        pod = await scene.driver.until("Succeeded", "Failed")
        return Restarted(
            killed=killed,
            restarts=container_status(pod, AGENT_CONTAINER)["restartCount"],
            hooks=(hook, hook_after),
            log=log,
            route=(address, port),
            pages=(before, after),
            parked=parked,
            closed=closed,
            routed=scene.seen.routed(scene.service),
            services=kept_since,
            ending=await scene.ended(),
        )


async def _balanced(scene: Scene) -> int:
    """Give the Service its address as a cloud's controller does, by its status; return when the watch told it."""
    status = {"status": {"loadBalancer": {"ingress": [{"ip": BALANCER}]}}}
    path = f"{services(scene.namespace, scene.service)}/status"
    (await scene.cluster.admin.request("PATCH", path, status)).ok()

    def told(seen: Changes) -> list[int]:
        changes = seen.of_service(scene.service)
        return [one.at for one in changes if one.object["status"]["loadBalancer"].get("ingress")]

    await scene.seen.until(lambda seen: bool(told(seen)))
    return told(scene.seen)[0]


async def hook_of(scene: Scene) -> str:
    """Return the hook's file as the driver sees it."""
    return await scene.cluster.execute(
        scene.namespace, scene.driver.pod, DRIVER_CONTAINER, ["cat", HOOK_FILE]
    )


def _epoch_of(service: Object) -> str:
    return str(service["metadata"].get("annotations", {}).get("spark-ui-agent/epoch", ""))


async def kill_agent(scene: Scene, number: signal.Signals = signal.SIGKILL) -> None:
    """Send the agent's process a signal, from the machine: in its own namespace nothing can kill process 1."""
    pod = await scene.driver.until_pod(lambda pod: is_running(pod, AGENT_CONTAINER))
    os.kill(main_process(pod, AGENT_CONTAINER), number)


async def until_restarted(scene: Scene, times: int) -> Object:
    """Wait until the kubelet runs the agent for the so manieth time again; return the Pod."""
    return await scene.driver.until_pod(
        lambda pod: (
            container_status(pod, AGENT_CONTAINER).get("restartCount") == times
            and is_running(pod, AGENT_CONTAINER)
        )
    )
