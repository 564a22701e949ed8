"""Lives of the agent within one of its Pod: after a defect, and after `drain`."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator

import pytest

from sandbox.netns import NetworkNamespace
from sandbox.standin import Drop, StandIn
from tests.contract.beside_ui import Bench, bench

FAULTY = "tests.support.faulty_agent"


@pytest.fixture
async def stand_in() -> AsyncIterator[StandIn]:
    async with StandIn.start(tls=True) as running:
        yield running


@pytest.fixture
async def scene(network: NetworkNamespace, stand_in: StandIn) -> AsyncIterator[Bench]:
    async with bench(network, stand_in) as made:
        yield made


async def test_after_a_defect_it_serves_again_in_the_same_process(scene: Bench) -> None:
    async with scene.ui() as ui, scene.agent(module=FAULTY) as agent:
        await scene.until_led_to(ui.port)
        agent.kill(signal.SIGUSR1)
        defect = await agent.line(lambda line: line.event == "defect", "the defect")
        assert (defect.fields["part"], defect.fields["error"]) == ("events", "ZeroDivisionError: a defect")
        await scene.until_led_to()
        await scene.until_led_to(ui.port)
        assert await agent.terminate() == 0
    await scene.until_led_to()
    assert ui.requests == ["/api/v1/applications"], "what was proven still holds"


async def test_a_defect_in_what_is_told_does_not_keep_the_service_from_being_parked(scene: Bench) -> None:
    async with scene.agent(module=FAULTY, env={"FAULT": "tell"}) as agent:
        async with scene.ui() as ui:
            await scene.until_led_to(ui.port)
            agent.kill(signal.SIGUSR1)
        await scene.until_led_to()
        defect = await agent.line(lambda line: line.event == "defect", "the defect")
        assert (defect.fields["part"], defect.fields["error"]) == ("tell", "ZeroDivisionError: a defect")
        async with scene.ui() as ui:
            await scene.until_led_to(ui.port)
        await scene.until_led_to()
        assert await agent.terminate() == 0


async def test_a_signal_between_two_lives_is_the_end(scene: Bench) -> None:
    async with scene.ui() as ui, scene.agent(module=FAULTY, env={"FAULT": "signal"}) as agent:
        await scene.until_led_to(ui.port)
        agent.kill(signal.SIGUSR1)
        assert await agent.exited() == 0
        assert scene.changes.leads_to(scene.scene.service) == set()


async def test_an_api_server_that_is_away_does_not_hold_poststart_for_long(
    scene: Bench, stand_in: StandIn
) -> None:
    async with scene.ui() as ui:
        async with scene.agent() as agent:
            await scene.until_led_to(ui.port)
            agent.kill(signal.SIGKILL)
            await agent.exited()
        stand_in.faults.plant(Drop())
        async with scene.agent(directory=agent.directory) as anew:
            installed = await anew.command("install-hook")
            assert (installed.code, "has not seen to the Service within" in installed.err) == (0, True)
            stand_in.faults.clear()
            assert await anew.terminate() == 0


async def test_a_restarted_agents_poststart_returns_when_nothing_leads_to_the_former_ui(scene: Bench) -> None:
    """kubelet gives the Pod's endpoints back after it: by then the UI has gone, with nobody there to park."""
    async with scene.agent() as agent:
        async with scene.ui() as ui:
            await scene.until_led_to(ui.port)
            agent.kill(signal.SIGKILL)
            await agent.exited()
        async with scene.agent(directory=agent.directory) as anew:
            installed = await anew.command("install-hook")
            assert (installed.code, "seen to" in installed.err) == (0, False)
            selector = (await scene.service())["spec"]["selector"]
            assert list(selector) == ["spark-ui-agent/parked"]
            assert await anew.terminate() == 0


async def test_an_agent_started_anew_after_a_drain_serves_again(scene: Bench) -> None:
    async with scene.ui() as ui:
        async with scene.agent() as agent:
            await scene.until_led_to(ui.port)
            assert (await agent.command("drain")).code == 0
            await scene.until_led_to()
            agent.kill(signal.SIGKILL)
            await agent.exited()
        async with scene.agent(directory=agent.directory) as anew:
            await scene.until_led_to(ui.port)
            assert await anew.terminate() == 0
    await scene.until_led_to()
