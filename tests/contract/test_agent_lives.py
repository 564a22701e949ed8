"""Lives of the agent within one of its Pod: after a defect, and after `drain`."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator

import pytest

from sandbox.netns import NetworkNamespace
from sandbox.standin import StandIn
from tests.contract.beside_ui import Bench, bench


@pytest.fixture
async def scene(network: NetworkNamespace) -> AsyncIterator[Bench]:
    async with StandIn.start(tls=True) as stand_in, bench(network, stand_in) as made:
        yield made


async def test_after_a_defect_it_serves_again_in_the_same_process(scene: Bench) -> None:
    async with scene.ui() as ui, scene.agent(module="tests.support.faulty_agent") as agent:
        await scene.until_led_to(ui.port)
        agent.kill(signal.SIGUSR1)
        defect = await agent.line(lambda line: line.event == "defect", "the defect")
        assert (defect.fields["part"], defect.fields["error"]) == ("events", "ZeroDivisionError: a defect")
        await scene.until_led_to()
        await scene.until_led_to(ui.port)
        assert await agent.terminate() == 0
    await scene.until_led_to()
    assert ui.requests == ["/api/v1/applications"], "what was proven still holds"


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
