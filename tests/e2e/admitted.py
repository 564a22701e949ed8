"""The admission policy on the node: an unchanged spark-submit, and another one from inside the driver that it made."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.apiclient import Object
from sandbox.changes import Routed
from sandbox.components import SERVICE_IP
from sandbox.image.images import AGENT
from sandbox.node.cluster import Cluster
from sandbox.node.submit import Job, arguments, create_spark_namespace
from sandbox.node.templates import AGENT_CONTAINER, DEPLOY
from sandbox.pods import DRIVER_CONTAINER, pods
from sandbox.waiting import wait_until
from tests.e2e.scene import Ending, Plan, ending, played

POLICY = DEPLOY / "admission/policy.yaml"
RELEASED = f"'{AGENT_CONTAINER}:"
OPTED_IN = {"spark-ui-agent/inject": "enabled"}
# an informer of the API server takes a policy up, and tells nobody
POLICY_SECONDS = 30.0
NO_WAIT = "spark.kubernetes.submission.waitAppCompletion"
LOOK_AGAIN = 0.1
SUBMIT_SECONDS = 120.0


@dataclass(frozen=True)
class Admitted:
    """Two jobs in a namespace that asks for the agent: one submitted from without, one from inside its driver.

    ``agents`` are the names of the sidecars that each driver Pod got.
    """

    agents: Sequence[list[str]]
    endings: Sequence[Ending]
    outer: Sequence[Routed]
    inner: Sequence[Routed]


async def live_admitted(cluster: Cluster) -> Admitted:
    """Put the policy in force, submit without a template, and submit again from inside."""
    await _in_force(cluster)
    # room for the second spark-submit
    conf = {"spark.driver.memory": "1g"}
    plan = Plan("outer", ["context", "await:stop", "stop"], conf=conf, labels=OPTED_IN)
    async with played(cluster, plan) as scene:
        await scene.routed(await scene.running())
        job = Job("inner", ["context", "result", "stop"], conf={NO_WAIT: "false"})
        argv = ["/opt/spark/bin/spark-submit", *arguments(job, scene.namespace, f"https://{SERVICE_IP}")]
        await cluster.execute(
            scene.namespace, scene.driver.pod, DRIVER_CONTAINER, argv, within=SUBMIT_SECONDS
        )
        (inner,) = await wait_until(
            cluster.admin,
            pods(scene.namespace),
            lambda found: any(one["status"].get("phase") in ("Succeeded", "Failed") for one in found),
            params={"fieldSelector": "metadata.name=inner-driver"},
            within=SUBMIT_SECONDS,
        )
        await scene.driver.steer("stop")
        outer = await scene.driver.until("Succeeded", "Failed")
        return Admitted(
            agents=[_sidecars(pod) for pod in (outer, inner)],
            endings=[await ending(cluster, pod) for pod in (outer, inner)],
            outer=scene.seen.routed("outer-ui"),
            inner=scene.seen.routed("inner-ui"),
        )


async def _in_force(cluster: Cluster) -> None:
    """Create the policy, with the sandbox's image of the agent, and wait until the API server goes by it."""
    text = POLICY.read_text()
    image = next(line for line in text.splitlines() if RELEASED in line)
    policy = text.replace(image, f"{image.partition(RELEASED)[0]}'{AGENT}'\"")
    await cluster.run_kubectl("apply", "--filename=-", given=policy)
    namespace = f"opted-in-{uuid.uuid4().hex[:6]}"
    await create_spark_namespace(cluster, namespace, OPTED_IN)
    driver = {
        "metadata": {"name": "driver", "labels": {"spark-role": "driver"}},
        "spec": {"containers": [{"name": DRIVER_CONTAINER, "image": "none"}]},
    }
    async with asyncio.timeout(POLICY_SECONDS):
        while True:
            answer = await cluster.admin.request("POST", pods(namespace), driver, params={"dryRun": "All"})
            if _sidecars(answer.ok()):
                return
            await asyncio.sleep(LOOK_AGAIN)


def _sidecars(pod: Object) -> list[str]:
    return [one["name"] for one in pod["spec"].get("initContainers", []) if one["image"] == AGENT]
