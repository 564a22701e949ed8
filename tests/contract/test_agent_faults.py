"""What goes wrong between the agent and its API server ends in the right state, and the agent ends with 0."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import pytest

from agent.commands import TIMED_OUT
from sandbox.agent import AgentProcess
from sandbox.netns import NetworkNamespace
from sandbox.pki import Pki
from sandbox.relay import relay
from sandbox.standin import Answer, Drop, Fault, Silence, StandIn, Truncate, When
from tests.contract.beside_ui import UID, Bench, bench

API_PORT = 6443
Effect = Answer | Drop | Silence | Truncate


@pytest.fixture
async def stand_in() -> AsyncIterator[StandIn]:
    async with StandIn.start(tls=True) as running:
        yield running


@pytest.fixture
async def scene(network: NetworkNamespace, stand_in: StandIn) -> AsyncIterator[Bench]:
    async with bench(network, stand_in) as made:
        yield made


@dataclass(frozen=True)
class Case:
    """A fault, how often it strikes, and what it strikes on the way to publishing and to parking."""

    name: str
    effect: Effect
    when: When = When.BEFORE
    times: int = 1
    publishing: Sequence[str] = ("get services", "create services", "patch services")
    parking: Sequence[str] = ("get services", "patch services", "list endpointslices")


CASES = [
    Case(
        "conflicts",
        Answer(409),
        times=4,
        publishing=("create services", "patch services"),
        parking=("patch services",),
    ),
    Case("throttled", Answer(429, retry_after=1), publishing=("patch services",)),
    Case("server error", Answer(500)),
    Case("unavailable", Answer(503)),
    Case("closed without an answer", Drop()),
    Case("reset", Drop(reset=True)),
    Case(
        "answer lost after the write",
        Drop(),
        When.AFTER,
        publishing=("create services", "patch services"),
        parking=("patch services",),
    ),
    Case("half an answer", Truncate(), When.AFTER),
    # the agent gives up after five seconds: once on each way is enough
    Case("never answered", Silence(), publishing=("patch services",), parking=()),
    Case("never answered after the write", Silence(), When.AFTER, publishing=(), parking=("patch services",)),
]


def _plant(stand_in: StandIn, case: Case, calls: Sequence[str]) -> list[Fault]:
    planted = []
    for call in calls:
        verb, _, resource = call.partition(" ")
        planted.append(
            stand_in.faults.plant(case.effect, verb=verb, resource=resource, when=case.when, times=case.times)
        )
    return planted


def _struck(faults: Sequence[Fault]) -> list[int]:
    return [fault.hits for fault in faults]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
async def test_after_any_fault_the_service_is_right(scene: Bench, stand_in: StandIn, case: Case) -> None:
    async with scene.agent() as agent:
        await agent.state("waiting")
        at_first = _plant(stand_in, case, case.publishing)
        async with scene.ui() as ui:
            await scene.until_led_to(ui.port)
            await agent.state("published", port=ui.port)
            assert _struck(at_first) == [case.times] * len(at_first)
            at_last = _plant(stand_in, case, case.parking)
        await scene.until_led_to()
        await agent.state("parked")
        assert _struck(at_last) == [case.times] * len(at_last)
        assert await agent.terminate() == 0
    steps = [step.routes for step in scene.changes.routed(scene.scene.service) if step.routes]
    assert steps == [{(scene.scene.place.ip, ui.port)}]
    assert (await scene.service())["spec"]["selector"]


async def test_a_throttled_agent_waits_as_long_as_it_was_told(scene: Bench, stand_in: StandIn) -> None:
    async with scene.agent() as agent:
        async with scene.ui() as ui:
            await scene.until_led_to(ui.port)
            await agent.state("published")
            fault = stand_in.faults.plant(
                Answer(429, retry_after=1), verb="get", resource="services", times=2
            )
            ui_closed = len(stand_in.requests)
        await scene.until_led_to()
    assert fault.hits == 2
    reads = [one for one in stand_in.requests[ui_closed:] if (one.verb, one.resource) == ("get", "services")]
    assert [one.status for one in reads[:3]] == [429, 429, 200]
    assert all(later.at - earlier.at >= 1_000_000_000 for earlier, later in itertools.pairwise(reads[:3]))


async def test_a_stale_token_is_told_and_a_fresh_one_is_taken(scene: Bench) -> None:
    token = scene.scene.place.token_file
    fresh = token.read_text()
    token.write_text("stale")
    async with scene.agent() as agent, scene.ui() as ui:
        await agent.state("blocked", reason="token")
        assert scene.changes.services == []
        token.write_text(fresh)
        await scene.until_led_to(ui.port)
        await agent.state("published")
        assert await agent.terminate() == 0
    await scene.until_led_to()


async def test_a_token_that_ends_while_published_is_read_again(scene: Bench, stand_in: StandIn) -> None:
    async with scene.agent() as agent:
        async with scene.ui() as ui:
            await scene.until_led_to(ui.port)
            await agent.state("published")
            fault = stand_in.faults.plant(Answer(401), verb="get", resource="services", times=1)
        await scene.until_led_to()
        assert fault.hits == 1
        await agent.state("parked")
        assert [line.fields["reason"] for line in agent.lines if line.event == "blocked"] == []
        assert await agent.terminate() == 0


async def test_a_server_without_a_trusted_certificate_is_told_nothing(
    scene: Bench, stand_in: StandIn, network: NetworkNamespace
) -> None:
    ca_file = scene.scene.place.ca_file
    right = ca_file.read_bytes()
    elsewhere = scene.scene.folder / "stranger"
    elsewhere.mkdir()
    ca_file.write_bytes(Pki.create(elsewhere, "stranger").ca_file.read_bytes())
    before = len(stand_in.requests)
    async with scene.agent() as agent, scene.ui() as ui:
        told = await agent.state("blocked", reason="api")
        assert "not vouched for" in told.fields["found"]
        assert len(stand_in.requests) == before
        ca_file.write_bytes(right)
        await scene.until_led_to(ui.port)
        await agent.state("published")
        assert await agent.terminate() == 0
    await scene.until_led_to()


async def test_an_api_server_that_is_away_is_waited_for_at_the_start_and_at_the_end(
    scene: Bench, stand_in: StandIn, network: NetworkNamespace
) -> None:
    place = replace(scene.scene.place, url=f"https://127.0.0.1:{API_PORT}", settings={"HOOK": "off"})
    directory = scene.scene.folder / "away"
    directory.mkdir()
    directory.chmod(0o777)
    port = int(stand_in.url.rpartition(":")[2])
    async with AgentProcess.start(place, directory, network=network, uid=UID) as agent:
        async with scene.ui() as ui:
            told = await agent.state("blocked", reason="api")
            assert str(API_PORT) in told.fields["found"]
            assert scene.changes.services == []
            async with relay(network, API_PORT, "127.0.0.1", port):
                await scene.until_led_to(ui.port)
                await agent.state("published")
        await agent.state("draining")
        async with relay(network, API_PORT, "127.0.0.1", port):
            await scene.until_led_to()
            await agent.state("parked")
            async with scene.ui(ui.port):
                await scene.until_led_to(ui.port)
        # away again, and this time for good: the time to leave is bounded, and preStop has had its share of it
        began = time.monotonic()
        assert (await agent.command("drain")).code == TIMED_OUT
        drained = time.monotonic()
        assert await agent.terminate() == 0
        assert time.monotonic() - drained < (drained - began) / 2
        assert agent.lines[-1].event == "left undone"
        assert agent.lines[-1].fields["remedy"]
