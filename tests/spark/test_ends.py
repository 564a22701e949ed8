"""The agent's ends and restarts, as a process: what it leaves of the Service, and that it never flaps.

A small server stands for the UI; only the last test needs a driver. Whether a plain sidecar ends that may not read Pods
takes minutes, so it is a unit test of `DriverWatch` on a virtual clock.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from collections.abc import AsyncIterator

import pytest

from agent.decide.ownership import PREFIX
from sandbox import launch
from sandbox.agent import PYTHON
from sandbox.apiclient import Object
from sandbox.fakeui import fake_ui
from sandbox.pods import DRIVER_CONTAINER, delete_pod, set_pod_status
from sandbox.scene import Stage
from sandbox.services import create_service, get_slices, routes, services
from sandbox.standin import StandIn
from sandbox.standin.faults import Drop, Hold, Silence
from tests.spark.hook_calls import BOUND, STOPPING, told
from tests.spark.hook_lives import SPARK_UID, Life, life, observe

JVM = 42
APPLICATION = "spark-0000ends"
COMMAND_SECONDS = 30.0
FILTERED = {
    "spark.ui.filters": "org.apache.spark.ui.JWSFilter",
    "spark.org.apache.spark.ui.JWSFilter.param.secretKey": base64.urlsafe_b64encode(os.urandom(32)).decode(),
}


@pytest.fixture
async def stand_in() -> AsyncIterator[StandIn]:
    async with StandIn.start(tls=True) as running:
        yield running


@pytest.fixture
async def living(stand_in: StandIn) -> AsyncIterator[Life]:
    async with life(stand_in, stage=Stage(application=APPLICATION)) as made:
        yield made


async def service(living: Life) -> Object | None:
    """The Service as it stands."""
    answer = await living.scene.api.request("GET", services(living.scene.namespace, living.scene.service))
    return None if answer.status == 404 else answer.ok()


async def deleted(living: Life) -> None:
    """Wait until the Service is deleted."""
    await living.changes.until(
        lambda seen: any(change.type == "DELETED" for change in seen.of_service(living.scene.service))
    )


async def driver_ends(living: Life, code: int = 0) -> None:
    """The driver's container ends, as kubelet would say."""
    place = living.scene.place
    await set_pod_status(living.scene.api, place.namespace, place.pod, terminated={DRIVER_CONTAINER: code})


async def drain(living: Life) -> tuple[int, str]:
    """Run `drain` in the agent's container, as a preStop hook does."""
    process = await launch.start(
        [str(PYTHON), "-m", "agent", "drain"],
        env={**living.scene.place.env(living.directory), "PYTHONPATH": str(launch.REPOSITORY)},
        namespace_fd=living.network.fd,
        uid=SPARK_UID,
        reads=[launch.REPOSITORY, living.directory],
        cwd=living.directory,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(COMMAND_SECONDS):
            output, _ = await process.communicate()
        return process.returncode or 0, output.decode()
    finally:
        await launch.end(process)


async def test_drain_parks_while_the_ui_is_there_and_for_good(living: Life) -> None:
    async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as ui:
        await living.published(ui.port)
        code, said = await drain(living)
        assert (code, said) == (0, "parked: no endpoint of the Service leads to this Pod\n")
        assert await living.empty() > 0
        await living.agent.state("done")
    async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as ui:
        await told(living, BOUND.format(JVM, ui.port))
        assert await living.agent.terminate() == 0
    assert [len(one.routes) for one in living.history if one.routes] == [1]
    assert await service(living) is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_parks_and_keeps_the_service(living: Life, number: signal.Signals) -> None:
    async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as ui:
        await living.published(ui.port)
        living.agent.kill(number)
        assert await living.agent.exited() == 0
        await living.empty()
    assert [change.type for change in living.changes.of_service(living.scene.service)][-1] == "MODIFIED"


@pytest.mark.parametrize("code", [0, 137])
async def test_a_driver_that_has_ended_releases_what_we_made(living: Life, code: int) -> None:
    async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as ui:
        await living.published(ui.port)
    await living.empty()
    assert await service(living) is not None  # the driver may yet start another context
    await driver_ends(living, code)
    await deleted(living)
    assert await living.agent.terminate() == 0


async def test_a_deleted_pod_releases_what_we_made(living: Life) -> None:
    place = living.scene.place
    async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as ui:
        await living.published(ui.port)
        await delete_pod(living.scene.api, place.namespace, place.pod, grace=30)
        code, _ = await drain(living)
        assert code == 0
    await deleted(living)
    assert await living.agent.terminate() == 0


async def test_what_we_adopted_is_given_back(stand_in: StandIn) -> None:
    async with life(
        stand_in, stage=Stage(application=APPLICATION), SERVICE="theirs", CREATE="false"
    ) as living:
        scene = living.scene
        await create_service(
            scene.api,
            scene.namespace,
            "theirs",
            selector={"spark-app-selector": APPLICATION, "spark-role": "driver"},
            metadata={"annotations": {"example.org/kept": "yes"}},
        )
        async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as ui:
            await living.changes.until_routed("theirs", {(living.ip, ui.port)})
        await living.changes.until_routed("theirs", set())
        await driver_ends(living)
        await living.changes.until(
            lambda seen: (
                not any(
                    name.startswith(PREFIX)
                    for name in seen.of_service("theirs")[-1].object["metadata"].get("annotations", {})
                )
            )
        )
        left = living.changes.of_service("theirs")[-1]
        assert left.type == "MODIFIED"
        assert left.object["metadata"]["annotations"] == {"example.org/kept": "yes"}
        assert living.changes.leads_to("theirs") == frozenset()
        assert await living.agent.terminate() == 0


@pytest.mark.parametrize("code", [0, 1])
async def test_a_plain_sidecar_ends_by_itself(stand_in: StandIn, code: int) -> None:
    async with life(stand_in, stage=Stage(application=APPLICATION), MODE="plain") as living:
        async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as ui:
            await living.published(ui.port)
        await living.empty()
        await driver_ends(living, code)
        assert await living.agent.exited() == 0
        assert await service(living) is None


@pytest.mark.parametrize("proof", ["hook", "rest"])
async def test_a_restart_while_published_does_not_flap(living: Life, proof: str) -> None:
    shown = APPLICATION if proof == "rest" else "spark-of-another-name"
    async with fake_ui(living.network, shown, uid=SPARK_UID) as ui:
        if proof == "hook":
            await told(living, BOUND.format(JVM, ui.port))
        await living.agent.state("published", proof=proof)
        await living.published(ui.port)
        key, before = living.hook_key(), living.history
        living.agent.kill(signal.SIGKILL)
        await living.restart()
        await living.agent.state("published", proof=proof, port=ui.port)
        assert living.hook_key() == key
        await told(living, STOPPING.format(JVM))
        scene = living.scene
        assert routes(await get_slices(scene.api, scene.namespace, scene.service)) == set()
        await living.empty()
        assert [one.routes for one in living.history] == [*(one.routes for one in before), frozenset()]


async def test_what_ended_meanwhile_is_parked_and_what_began_is_published(living: Life) -> None:
    async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as first:
        await living.published(first.port)
        living.agent.kill(signal.SIGKILL)
        await living.agent.exited()
    await living.restart()
    await living.empty()
    living.agent.kill(signal.SIGKILL)
    await living.agent.exited()
    before = living.history
    async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as second:
        await living.restart()
        await living.published(second.port)
        assert len(living.history) == len(before) + 1
    await living.empty()


async def test_a_write_of_the_former_life_does_not_land_late(stand_in: StandIn, living: Life) -> None:
    async with fake_ui(living.network, APPLICATION, uid=SPARK_UID):
        held = Hold()
        stand_in.faults.plant(held, verb="patch", resource="services", times=1)
        await held.reached.wait()
        living.agent.kill(signal.SIGKILL)
        await living.agent.exited()
    (late,) = [one for one in stand_in.requests if one.verb == "patch" and one.resource == "services"]
    await living.restart()
    await stand_in.recording.until(
        lambda one: one.verb == "patch" and one.resource == "services" and one.status == 200
    )
    # the network delivers it now
    assert (await living.scene.api.request("PATCH", late.path, late.json)).status == 409
    assert [one.routes for one in living.history if one.routes] == []


async def test_an_api_that_comes_back_in_time_is_told_to_park(stand_in: StandIn, living: Life) -> None:
    async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as ui:
        await living.published(ui.port)
        stand_in.faults.plant(Drop(reset=True), times=3)
        assert await living.agent.terminate() == 0
        await living.empty()


async def test_an_api_that_stays_away_is_left(stand_in: StandIn, living: Life) -> None:
    async with fake_ui(living.network, APPLICATION, uid=SPARK_UID) as ui:
        await living.published(ui.port)
        stand_in.faults.plant(Silence())
        assert await living.agent.terminate() == 0
        line = await living.agent.line(lambda one: one.event == "left undone", "left undone")
        assert line.fields["wanted"] == "park"
        assert line.fields["service"] == living.scene.service


async def test_a_restarted_agent_serves_a_filtered_ui_and_parks_it_in_time(stand_in: StandIn) -> None:
    async with life(stand_in) as living, living.driver("4.1.4", conf=FILTERED) as driver:
        port = await driver.ui_bound()
        await living.published(port)
        before = living.history
        living.agent.kill(signal.SIGKILL)
        await living.restart()
        await living.agent.state("published", proof="hook", port=port)
        assert living.history == before
        ending = await observe(living, driver, "4.1.4", "SIGTERM")
        assert ending.margin > 0
        assert [post.accepted for post in ending.held] == [True]
