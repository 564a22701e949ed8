"""A driver Pod that is deleted while its UI is asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.apiclient import Object
from sandbox.capture import Connection, capture
from sandbox.changes import Changes
from sandbox.node.cluster import Cluster
from sandbox.node.containers import finished_at, terminated
from sandbox.node.templates import AGENT_CONTAINER
from sandbox.pods import DRIVER_CONTAINER
from sandbox.spark.portwatch import watch_ports
from tests.e2e.client import Answers, Asked, asking
from tests.e2e.cut_short import PARKED
from tests.e2e.lives import EXPOSED, closing, epoch
from tests.e2e.scene import Plan, Scene, played


@dataclass(frozen=True)
class Deleted:
    """A driver Pod that was deleted while its UI was asked for in a loop.

    ``parked`` is when the Service was, ``emptied`` when no endpoint, ready or not, led to the Pod, ``synced`` when
    kube-proxy had rules that know. ``reached`` are the connections to the UI's port that left the node for the Pod.
    ``lingered``: how long the agent outlived the driver by what the kubelet has told of both, in whole seconds.
    """

    deleted: int
    parked: int
    emptied: int
    closed: int
    synced: int
    asked: Sequence[Asked]
    reached: Sequence[Connection]
    driver: Object
    agent: Object
    lingered: float


async def live_deleted(cluster: Cluster, variant: str) -> Deleted:
    """Publish, then ``kubectl delete pod``."""
    async with played(cluster, Plan("deleted", ["context", "result", "await:never"], variant)) as scene:
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
                emptied = await scene.seen.until_routed(scene.service, set(), ready=False)
                synced = await cluster.proxy_synced(parked / 1e9 + epoch()) - epoch()
                last = await ending
                await scene.until_gone()
                # a request that met the Pod's end may be stuck for a while
                await answers.until(lambda one: one.at > synced * 1e9)
                reached = captured.connections()
        driver, agent = (terminated(last, name) for name in (DRIVER_CONTAINER, AGENT_CONTAINER))
        return Deleted(
            deleted=deleted,
            parked=parked,
            emptied=emptied,
            closed=closed,
            synced=int(synced * 1e9),
            asked=answers.asked,
            reached=[one for one in reached if (one.destination, one.port) == (address, port)],
            driver=driver,
            agent=agent,
            lingered=finished_at(agent) - finished_at(driver),
        )


async def _parked_since(scene: Scene, since: int) -> int:
    """Wait until the agent has parked the Service; return when.

    That its slice has no ready endpoint does not tell: a Pod that is being deleted is not ready, and kube-proxy still
    serves it where no other is.
    """

    def parked(seen: Changes) -> list[int]:
        changes = seen.of_service(scene.service)
        return [one.at for one in changes if one.at > since and PARKED in one.object["spec"]["selector"]]

    await scene.seen.until(lambda seen: bool(parked(seen)))
    return parked(scene.seen)[0]


def _all_ended(pod: Object) -> bool:
    return bool(terminated(pod, DRIVER_CONTAINER) and terminated(pod, AGENT_CONTAINER))
