"""A plain sidecar must end after the driver, whatever the API server allows: else the Pod never completes."""

from __future__ import annotations

import pytest

from sandbox.netns import NetworkNamespace
from sandbox.pods import set_pod_status
from sandbox.standin import Answer, StandIn
from tests.contract.beside_ui import bench

CONTAINER = "spark-kubernetes-driver"


@pytest.mark.parametrize(
    "status", [None, 403, 500], ids=["all well", "no rights on services", "services fail"]
)
async def test_a_plain_sidecar_ends_after_the_driver(network: NetworkNamespace, status: int | None) -> None:
    async with StandIn.start(tls=True) as stand_in, bench(network, stand_in) as scene:
        if status is not None:
            stand_in.faults.plant(Answer(status), resource="services")
        async with scene.agent(mode="plain") as agent:
            await agent.state("waiting")
            place = scene.scene.place
            await set_pod_status(
                scene.scene.api, place.namespace, place.pod, ready=False, terminated={CONTAINER: 1}
            )
            assert await agent.exited() == 0


async def test_a_pod_uid_that_was_forgotten_does_not_end_the_agent(network: NetworkNamespace) -> None:
    async with (
        StandIn.start(tls=True) as stand_in,
        bench(network, stand_in) as scene,
        scene.agent(env={"POD_UID": ""}) as agent,
    ):
        await agent.state("blocked", reason="settings")
        await stand_in.recording.until(lambda one: one.resource == "pods" and one.verb == "get", count=2)
        found = await agent.command("status", "--json")
        assert '"state": "blocked"' in found.out
        assert await agent.terminate() == 0
