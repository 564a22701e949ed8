"""Lives that are cut short: a driver Pod that is deleted, an agent that is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sandbox.apiclient import Object
from sandbox.capture import Connection, capture
from sandbox.changes import Change, Changes, Route, Routed
from sandbox.node.cluster import Cluster
from sandbox.node.containers import container_status, is_running, main_process, terminated
from sandbox.node.templates import AGENT_CONTAINER
from sandbox.page import Page
from sandbox.pods import DRIVER_CONTAINER
from sandbox.spark.portwatch import watch_ports
from tests.e2e.client import Answers, Asked, asking
from tests.e2e.lives import EXPOSED, HOOK_FILE, STEPS, closing, end, epoch, stopping
from tests.e2e.scene import Ending, Plan, Scene, played

# the only key of a parked Service's selector
PARKED = "spark-ui-agent/parked"


@dataclass(frozen=True)
class Deleted:
    """A driver Pod that was deleted while its UI was asked for in a loop.

    ``parked`` is when the Service was, ``synced`` when kube-proxy had rules that know. ``reached`` are the connections
    to the UI's port that left the node for the Pod. ``left`` is what was left of the grace period (seconds) when the Pod
    was gone.
    """

    deleted: int
    parked: int
    closed: int
    synced: int
    asked: Sequence[Asked]
    reached: Sequence[Connection]
    driver: Object
    agent: Object
    left: float


async def live_deleted(cluster: Cluster) -> Deleted:
    """Publish, then ``kubectl delete pod``."""
    async with played(cluster, Plan("deleted", ["context", "result", "await:never"], "native")) as scene:
        address = await scene.running()
        port = await scene.routed(address)
        host = (await scene.kept())["spec"]["clusterIP"]
        await cluster.first_page(host, EXPOSED)
        await scene.driver.until_step("result")
        answers = Answers()
        with cluster.pod_network(address) as network:
            async with (
                watch_ports(network) as ports,
                capture(cluster.network) as captured,
                asking(cluster, host, EXPOSED, "/jobs/", answers),
            ):
                ending = asyncio.create_task(scene.driver.until_pod(_all_ended))
                deleted = time.monotonic_ns()
                where = f"--namespace={scene.namespace}"
                await cluster.run_kubectl("delete", "pod", where, scene.driver.pod, "--wait=false")
                closed = await closing(ports, port)
                parked = await _parked_since(scene, deleted)
                synced = await cluster.proxy_synced(parked / 1e9 + epoch()) - epoch()
                last = await ending
                await scene.until_gone()
                gone = time.time()
                # a request that met the Pod's end may be stuck for a while
                await answers.until(lambda one: one.at > synced * 1e9)
                reached = captured.connections()
        return Deleted(
            deleted=deleted,
            parked=parked,
            closed=closed,
            synced=int(synced * 1e9),
            asked=answers.asked,
            reached=[one for one in reached if (one.destination, one.port) == (address, port)],
            driver=terminated(last, DRIVER_CONTAINER),
            agent=terminated(last, AGENT_CONTAINER),
            left=datetime.fromisoformat(last["metadata"]["deletionTimestamp"]).timestamp() - gone,
        )


async def _parked_since(scene: Scene, since: int) -> int:
    """Wait until the agent has parked the Service; return when.

    Its slice does not tell: a Pod that is being deleted is not ready there, and kube-proxy still serves it where no
    other is.
    """

    def parked(seen: Changes) -> list[int]:
        changes = seen.of_service(scene.service)
        return [one.at for one in changes if one.at > since and PARKED in one.object["spec"]["selector"]]

    await scene.seen.until(lambda seen: bool(parked(seen)))
    return parked(scene.seen)[0]


def _all_ended(pod: Object) -> bool:
    return bool(terminated(pod, DRIVER_CONTAINER) and terminated(pod, AGENT_CONTAINER))


@dataclass(frozen=True)
class Restarted:
    """A job whose agent was killed by SIGKILL. ``services`` are the Service's events, the last but one before its end.

    ``hooks`` are the hook's file before and after, ``pages`` come from the node's port.
    """

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
    """Publish on a node port, kill the agent, then stop the context."""
    async with played(cluster, Plan("restarted", STEPS, "overlays/node-port")) as scene:
        address = await scene.running()
        port = await scene.routed(address)
        kept = await scene.kept()
        node_port, epoch = kept["spec"]["ports"][0]["nodePort"], _epoch_of(kept)
        await scene.driver.until_step("result")
        hook = await _hook(scene)
        before = await cluster.first_page(cluster.network.address, node_port, "/jobs/")

        await kill_agent(scene)
        await until_restarted(scene, 1)
        # the first write of a new life, which makes whatever the former one had under way fail
        await scene.seen.until(lambda seen: _epoch_of(seen.of_service(scene.service)[-1].object) != epoch)
        # a Pod is not ready while one of its sidecars is started again: the slice lost its address for that time
        await scene.routed(address)
        after = await cluster.first_page(cluster.network.address, node_port, "/jobs/")
        hook_after = await _hook(scene)
        parked, closed = await stopping(scene, address, port)
        log = await scene.agent_log()
        services = scene.seen.of_service(scene.service)
        await end(scene)
        pod = await scene.driver.until("Succeeded", "Failed")
        return Restarted(
            restarts=container_status(pod, AGENT_CONTAINER)["restartCount"],
            hooks=(hook, hook_after),
            log=log,
            route=(address, port),
            pages=(before, after),
            parked=parked,
            closed=closed,
            routed=scene.seen.routed(scene.service),
            services=services,
            ending=await scene.ended(),
        )


async def _hook(scene: Scene) -> str:
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
