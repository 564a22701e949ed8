"""From one UI of the Pod to another: what is told while the Service's endpoints still lead to the former port."""

from __future__ import annotations

import asyncio

import pytest

from agent import times
from agent.decide.desired import guarded, withdrawn
from agent.decide.status import status
from agent.model import Closed, HookStopping, State
from sandbox.standin import Drop, Hold, When
from tests.history.clock import virtual
from tests.support.cluster import Cluster
from tests.support.life import Life, alive, serving
from tests.support.make import MARK, OWN, bound, port, service, settings
from tests.support.wire import SETTLE, Wire, wired

LATE = 15.0  # an endpoint controller that is busy or restarts


async def moved(life: Life, wire: Wire) -> None:
    """JVM 7 serves at 39001. Another UI, that of JVM 8 at 39002, takes its place; its endpoints come late."""
    await asyncio.sleep(1)
    assert wire.cluster.ports() == {39001}
    wire.settle = LATE
    wire.forget()
    life.tell(bound(39002, pid=8))
    await life.until(lambda: bool(life.told) and life.told[-1].generation == life.world.intent.generation)


@virtual
async def test_stop_goes_on_only_when_no_endpoint_leads_to_the_former_port_however_late_that_is() -> None:
    cluster, wire = wired()
    async with serving(wire) as life:
        await moved(life, wire)
        life.tell(HookStopping(7))
        assert not withdrawn(life.world, 7)
        now = status(life.world, wire.settings)
        assert (now.state, now.reason) == (State.WAITING, "publishing")
        assert "former port" in now.found

        await life.until(lambda: withdrawn(life.world, 7))
        assert cluster.ports() == {39002}
        assert life.state is State.PUBLISHED


@virtual
async def test_late_endpoints_are_looked_for_at_a_bounded_pace_and_then_no_more() -> None:
    _, wire = wired()
    async with serving(wire) as life:
        await moved(life, wire)
        await life.published()
        assert [call[0] for call in wire.writes] == ["patch"]
        passes = [call[0] for call in wire.calls].count("get")
        assert 1 < passes < LATE / times.RETRY_MIN
        assert [call[0] for call in wire.calls].count("list") <= passes * times.SLICE_READS

        wire.forget()
        await asyncio.sleep(10 * times.DRIFT)
        assert {call[:2] for call in wire.calls} == {("get", "ui")}
        assert len(wire.calls) <= 13


@virtual
async def test_endpoints_that_never_come_are_looked_for_ever_more_seldom() -> None:
    _, wire = wired()
    async with serving(wire) as life:
        await asyncio.sleep(1)
        wire.settle = 10_000
        life.tell(HookStopping(7))
        await asyncio.sleep(1)
        wire.forget()
        await asyncio.sleep(7200)
        assert not life.gone
        lists = [call[0] for call in wire.calls].count("list")
        assert lists < times.SLICE_READS + times.LATE_LOOKS + 7200 / (0.8 * times.RETRY_MAX)


@virtual
async def test_the_former_port_is_guarded_while_endpoints_lead_to_it() -> None:
    cluster = Cluster()
    wire = Wire(cluster, settings(uid=cluster.uid, host_network=True))
    async with serving(wire) as life:
        await moved(life, wire)
        life.tell(Closed(39001))
        assert cluster.ports() == {39001}
        assert [freed.port for freed in guarded(life.world, wire.settings)] == [39001]

        await life.published()
        assert cluster.ports() == {39002}
        assert guarded(life.world, wire.settings) == ()


@virtual
async def test_while_it_may_lead_to_a_former_port_the_api_server_is_asked_every_second() -> None:
    cluster, wire = wired()
    async with serving(wire) as life:
        await asyncio.sleep(1)
        wire.faults.plant(Drop())
        life.tell(bound(39002, pid=8))
        await asyncio.sleep(600)
        assert cluster.ports() == {39001}
        wire.faults.clear()
        await life.published(within=2 * times.RETRY_MAX_PARKING)
        assert cluster.ports() == {39002}


@virtual
async def test_every_port_that_was_written_counts_not_just_the_last_that_was_reached() -> None:
    cluster, wire = wired()
    async with serving(wire) as life:
        await asyncio.sleep(1)
        looked = Hold()
        wire.faults.plant(looked, verb="list", when=When.AFTER, times=1)
        life.tell(bound(39002, pid=8))
        await looked.reached.wait()
        await asyncio.sleep(2 * SETTLE)
        assert cluster.ports() == {39002}

        wire.settle = LATE
        life.tell(bound(39003, pid=9), HookStopping(8))
        await life.until(lambda: withdrawn(life.world, 8))
        assert cluster.ports() == {39003}
        looked.release()


@pytest.mark.parametrize("written", [False, True])
@virtual
async def test_a_restarted_agent_sees_to_what_a_former_life_had_led_here(written: bool) -> None:
    cluster, wire = wired()
    async with serving(wire) as life:
        await asyncio.sleep(1)
        wire.settle = LATE
        if written:
            life.tell(bound(39002, pid=8))
            await life.until(lambda: bool(wire.writes[2:]))
            await asyncio.sleep(0.1)

    async with alive(wire, former=True) as life:
        life.tell(bound(39001, pid=7), bound(39002, pid=8), HookStopping(7))
        await life.until(lambda: withdrawn(life.world, 7))
        assert cluster.ports() == {39002}


@pytest.mark.parametrize("restarted", [False, True])
@virtual
async def test_after_a_park_that_was_not_seen_through_endpoints_may_still_lead_to_the_former_port(
    restarted: bool,
) -> None:
    cluster, wire = wired()
    async with serving(wire) as former:
        await asyncio.sleep(1)
        wire.settle = LATE
        former.tell(HookStopping(7))
        await former.settled()
        assert cluster.ports() == {39001}
        if not restarted:
            former.tell(bound(39002, pid=8))
            await former.published()
            assert cluster.ports() == {39002}

    async with alive(wire, former=True) as life:
        life.tell(bound(39002, pid=8))
        await life.published()
        assert cluster.ports() == {39002}


@virtual
async def test_another_entry_that_leads_to_the_former_port_is_no_reason_to_wait() -> None:
    entries = [port(5005, name="spark-ui"), port(39001, name="other", number=81)]
    cluster, wire = wired(service(selector=OWN, ports=entries))
    async with serving(wire) as life:
        await asyncio.sleep(1)
        life.tell(bound(39002, pid=8))
        await life.published(within=1)
        assert cluster.ports() == {39001, 39002}


@pytest.mark.parametrize("stale", [False, True])
@virtual
async def test_an_adopted_service_is_not_called_published_while_it_leads_where_others_led_it(
    stale: bool,
) -> None:
    cluster, wire = wired(service(selector=OWN, ports=[port(4040)], annotations=MARK), settle=LATE)
    if stale:
        cluster.patch({"spec": {"selector": None}})
    assert cluster.ports() == {4040}
    async with serving(wire):
        assert cluster.ports() == {39001}


@virtual
async def test_what_was_served_nowhere_before_is_published_without_a_look_at_its_endpoints() -> None:
    _, wire = wired()
    async with serving(wire) as life:
        assert "list" not in [call[0] for call in wire.calls]
        await moved(life, wire)
        life.tell(HookStopping(7), HookStopping(8))
        await life.withdrawn()
        wire.forget()
        life.tell(bound(39003, pid=9))
        await life.published()
        assert [call[0] for call in wire.calls] == ["get", "patch"]


@virtual
async def test_an_outage_while_endpoints_are_late_is_told() -> None:
    _, wire = wired()
    async with serving(wire) as life:
        await moved(life, wire)
        wire.faults.plant(Drop())
        await life.until(lambda: life.state is State.BLOCKED)
        assert status(life.world, wire.settings).reason == "api"
        assert not withdrawn(life.world, 7)
        wire.faults.clear()
        await life.published()
