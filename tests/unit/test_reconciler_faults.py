"""The reconciler when the API server fails, is slow, or others write too: it ends right, and says what is wrong."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from agent import times
from agent.model import Closed, Draining, HookStopping, State
from sandbox.standin import Answer, Delay, Drop, Hold, Request, Silence, When
from sandbox.standin.faults import Effect
from tests.history.clock import virtual
from tests.support.cluster import Cluster
from tests.support.life import alive, serving
from tests.support.make import adoptable, bound, port
from tests.support.wire import Wire, wired

LOST = When.AFTER


async def quiet(wire: Wire, seconds: float = 3 * times.DRIFT) -> None:
    """Waits for a while of virtual time in which nothing may be written."""
    await asyncio.sleep(1)
    wire.forget()
    await asyncio.sleep(seconds)
    assert wire.writes == []


FAULTS = [
    pytest.param(Answer(409), When.BEFORE, 3, id="conflicts"),
    pytest.param(Answer(429, retry_after=2), When.BEFORE, 2, id="throttled"),
    pytest.param(Answer(429, retry_after=0), When.BEFORE, 2, id="throttled, come back at once"),
    pytest.param(Answer(503, retry_after=1), When.BEFORE, 2, id="unavailable for a while"),
    pytest.param(Answer(503), When.BEFORE, 2, id="unavailable"),
    pytest.param(Answer(500), When.BEFORE, 4, id="internal error, not written"),
    pytest.param(Answer(500), When.AFTER, 2, id="internal error, but written"),
    pytest.param(Answer(504), When.AFTER, 1, id="gateway time-out, but written"),
    pytest.param(Drop(), When.BEFORE, 3, id="dropped before the write"),
    pytest.param(Drop(), When.AFTER, 3, id="the answer to a good write is lost"),
    pytest.param(Silence(), When.BEFORE, 1, id="never answered, not written"),
    pytest.param(Silence(), When.AFTER, 1, id="never answered, but written"),
    pytest.param(Delay(4.9), When.BEFORE, 1, id="just in time"),
    pytest.param(Delay(7.0), When.BEFORE, 1, id="written after we gave up"),
    pytest.param(Answer(401), When.BEFORE, 3, id="token expired, thrice"),
    pytest.param(Answer(403), When.BEFORE, 3, id="right taken away for a while"),
    pytest.param(Answer(422), When.BEFORE, 2, id="refused as invalid"),
]


@pytest.mark.parametrize(("effect", "when", "count"), FAULTS)
@pytest.mark.parametrize("verb", ["get", "create", "patch"])
@virtual
async def test_publishing_through_a_fault_ends_published_and_quiet(
    effect: Effect, when: When, count: int, verb: str
) -> None:
    cluster, wire = wired()
    wire.faults.plant(effect, verb=verb, resource="services", when=when, times=count)
    async with serving(wire) as life:
        await asyncio.sleep(10)
        assert cluster.ports() == {39001}
        await quiet(wire)
        assert life.state is State.PUBLISHED


@pytest.mark.parametrize(("effect", "when", "count"), FAULTS)
@pytest.mark.parametrize("verb", ["get", "patch", "list"])
@virtual
async def test_parking_through_a_fault_ends_gone_and_quiet(
    effect: Effect, when: When, count: int, verb: str
) -> None:
    cluster, wire = wired(adoptable())
    async with serving(wire) as life:
        await asyncio.sleep(1)
        wire.faults.plant(effect, verb=verb, when=when, times=count)
        life.tell(HookStopping(7))
        await life.withdrawn()
        assert cluster.ports() == set()
        await quiet(wire)
        assert cluster.ports() == set()
        assert life.gone


@virtual
async def test_a_retry_after_is_kept_to() -> None:
    _, wire = wired(adoptable())
    fault = wire.faults.plant(Answer(429, retry_after=20), verb="patch", times=1)
    loop = asyncio.get_running_loop()
    async with serving(wire):
        assert fault.hits == 1
        assert 20 <= loop.time() < 26


@virtual
async def test_a_retry_after_of_nothing_is_no_reason_to_hurry() -> None:
    _, wire = wired(adoptable())
    wire.faults.plant(Answer(429, retry_after=0))
    async with alive(wire):
        await asyncio.sleep(600)
    assert len(wire.calls) < 700


@virtual
async def test_a_writer_of_twenty_patches_a_second_does_not_keep_us_from_it_and_loses_nothing() -> None:
    cluster, wire = wired(adoptable())
    count = 0

    async def rival() -> None:
        nonlocal count
        while True:
            await asyncio.sleep(0.05)
            count += 1
            ports = [port(cluster_target(cluster)), port(9000 + count % 10, name="more", number=9999)]
            cluster.patch({"metadata": {"labels": {"n": str(count)}, "annotations": {"n": str(count)}}})
            cluster.patch({"spec": {"ports": ports}})

    writing = asyncio.ensure_future(rival())
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.published(within=5)
        await asyncio.sleep(1)
        assert (cluster.uid, 39001) in cluster.routes()
        life.tell(HookStopping(7))
        await life.withdrawn(within=5)
        assert cluster.ports() == set()
    writing.cancel()
    live = cluster.service()
    assert live is not None
    assert live["metadata"]["labels"] == {"k": "v", "n": str(count)}
    assert live["metadata"]["annotations"]["n"] == str(count)
    assert [entry["name"] for entry in live["spec"]["ports"]] == ["http-ui", "more"]


def cluster_target(cluster: Cluster) -> int:
    live = cluster.service()
    assert live is not None
    found = live["spec"]["ports"][0]["targetPort"]
    assert isinstance(found, int)
    return found


@virtual
async def test_an_api_server_that_is_away_for_long_is_asked_ever_more_seldom_and_found_again() -> None:
    cluster, wire = wired(adoptable())
    async with alive(wire) as life:
        await life.settled()
        outage = wire.faults.plant(Drop())
        life.tell(bound(39001))
        await life.settled()
        assert life.told[-1].blocked is not None
        assert life.told[-1].blocked.code == "api"
        assert life.told[-1].routed
        await asyncio.sleep(7200)
        assert outage.hits < 7200 / (0.8 * times.RETRY_MAX) + 20
        wire.faults.clear()
        await life.published(within=2 * times.RETRY_MAX)
        await asyncio.sleep(1)
        assert cluster.ports() == {39001}


@virtual
async def test_an_outage_does_not_unsay_what_was_reached() -> None:
    _, wire = wired(adoptable())
    async with serving(wire) as life:
        wire.faults.plant(Drop())
        await asyncio.sleep(3 * times.DRIFT)
        assert life.state is State.PUBLISHED


@virtual
async def test_while_a_service_may_lead_to_a_closed_port_the_api_server_is_asked_every_second() -> None:
    cluster, wire = wired(adoptable())
    async with serving(wire) as life:
        wire.faults.plant(Drop())
        life.tell(Closed(39001))
        await asyncio.sleep(600)
        assert not life.gone
        wire.faults.clear()
        await life.withdrawn(within=2 * times.RETRY_MAX_PARKING)
        assert cluster.ports() == set()


@virtual
async def test_a_newer_wish_abandons_a_write_that_hangs_and_fences_it_off() -> None:
    cluster, wire = wired(adoptable())
    hold = Hold()
    wire.faults.plant(hold, verb="patch", times=1)
    async with alive(wire) as life:
        life.tell(bound(39001))
        await hold.reached.wait()
        started = asyncio.get_running_loop().time()
        life.tell(HookStopping(7))
        await life.withdrawn()
        assert asyncio.get_running_loop().time() - started < 1
        assert cluster.ports() == set()
        live = cluster.service()
        assert live is not None
        assert "spark-ui-agent/epoch" in live["metadata"]["annotations"]

        hold.release()  # the publication of before arrives at last
        await asyncio.sleep(1)
        assert cluster.ports() == set()
        assert cluster.service() == live
        await quiet(wire)


@pytest.mark.parametrize(
    "effect", [Answer(429, retry_after=1), Answer(403), Answer(422), Answer(500), Drop(), Answer(401)]
)
@virtual
async def test_the_fence_stays_due_until_it_stands(effect: Effect) -> None:
    cluster, wire = wired(adoptable())
    hold = Hold()
    wire.faults.plant(hold, verb="patch", times=1)
    async with alive(wire) as life:
        life.tell(bound(39001))
        await hold.reached.wait()
        wire.faults.plant(effect, verb="patch", times=2)
        life.tell(HookStopping(7))
        await life.withdrawn()
        hold.release()
        await asyncio.sleep(1)
        assert cluster.ports() == set()


@pytest.mark.parametrize("effect", [Answer(500), Answer(504), Drop()])
@virtual
async def test_a_write_that_was_answered_with_an_error_may_not_land_after_all(effect: Effect) -> None:
    cluster, wire = wired(adoptable())
    failed = wire.faults.plant(effect, verb="patch", times=1)
    async with alive(wire) as life:
        life.tell(bound(39001))
        await asyncio.sleep(0.05)
        assert failed.hits == 1
        sent = wire.writes[0][2]
        assert sent is not None
        life.tell(HookStopping(7))
        await life.withdrawn()
        assert cluster.land(dict(sent)) == 409
        await asyncio.sleep(1)
        assert cluster.ports() == set()


@virtual
async def test_wishes_that_change_faster_than_a_pass_can_be_abandoned_do_no_harm() -> None:
    for gap in range(6):
        cluster, wire = wired(adoptable())
        hold = Hold()
        wire.faults.plant(hold, verb="patch", times=1)
        async with alive(wire) as life:
            life.tell(bound(39001))
            await hold.reached.wait()
            for number in range(2, 6):
                life.tell(HookStopping(7), bound(39000 + number))
                for _ in range(gap):
                    await asyncio.sleep(0)
            await life.published()
            await asyncio.sleep(1)
            assert cluster.ports() == {39005}, f"with {gap} turns of the loop between them"


@virtual
async def test_a_conflict_is_met_at_once_with_a_fresh_read() -> None:
    _, wire = wired(adoptable())
    wire.faults.plant(Answer(409), verb="patch", times=3)
    async with alive(wire) as life:
        await life.settled()
        wire.forget()
        started = asyncio.get_running_loop().time()
        life.tell(bound(39001))
        await life.published()
        assert asyncio.get_running_loop().time() - started < times.RETRY_MIN
        assert [call[0] for call in wire.calls if call[1] == "ui"] == ["get", "patch"] * 4
        assert [told.blocked for told in life.told] == [None, None]


@virtual
async def test_a_late_creation_does_no_harm() -> None:
    cluster, wire = wired()
    hold = Hold()
    wire.faults.plant(hold, verb="create", times=1)
    async with alive(wire) as life:
        life.tell(bound(39001))
        await hold.reached.wait()
        life.tell(HookStopping(7))
        await life.withdrawn()
        hold.release()
        await asyncio.sleep(1)
        assert cluster.service() is not None
        assert cluster.ports() == set()

        life.tell(bound(39001, inode=2))
        await life.published()
        await asyncio.sleep(1)
        assert cluster.ports() == {39001}


@virtual
async def test_a_wish_that_changes_while_a_pass_reads_is_the_one_that_is_carried_out() -> None:
    cluster, wire = wired(adoptable())
    hold = Hold()
    wire.faults.plant(hold, verb="get", resource="services", times=1)
    async with alive(wire) as life:
        life.tell(bound(39001))
        await hold.reached.wait()
        life.tell(bound(39002))
        await life.published()
        await asyncio.sleep(1)
        assert cluster.ports() == {39002}
        assert len(wire.writes) == 1
        hold.release()


@virtual
async def test_a_service_deleted_between_read_and_write_is_made_anew() -> None:
    cluster, wire = wired(adoptable())
    hold = Hold()
    wire.faults.plant(hold, verb="patch", times=1)
    async with alive(wire) as life:
        life.tell(bound(39001))
        await hold.reached.wait()
        cluster.delete()
        hold.release()
        await life.published()
        await asyncio.sleep(1)
        assert cluster.ports() == {39001}


@virtual
async def test_what_rewrites_each_write_of_ours_is_told_and_fought_ever_more_seldom() -> None:
    _, wire = wired(adoptable())

    def webhook(request: Request) -> Request:
        if request.method != "PATCH":
            return request
        body = request.json_object()
        body["spec"]["selector"]["team"] = "everywhere"
        return replace(request, body=json.dumps(body).encode())

    wire.admit = webhook
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        assert life.told[-1].blocked is not None
        assert life.told[-1].blocked.code == "conflict"
        await asyncio.sleep(3600)
        assert len(wire.writes) < 6 * (3600 / (0.8 * times.RETRY_MAX) + 12)


@virtual
async def test_draining_while_publishing_ends_parked() -> None:
    for moment in range(40):
        cluster, wire = wired(adoptable())
        async with alive(wire) as life:
            life.tell(bound(39001))
            await asyncio.sleep(moment * 0.0005)
            life.tell(Draining("SIGTERM"))
            await life.withdrawn()
            await asyncio.sleep(1)
            assert cluster.ports() == set(), f"after {moment * 0.5} ms"


@virtual
async def test_one_failure_is_no_news_three_are() -> None:
    _, wire = wired(adoptable())
    async with alive(wire) as life:
        await life.settled()
        fault = wire.faults.plant(Drop(), times=3)
        life.tell(bound(39001))
        await life.until(lambda: fault.hits == 3)
        assert life.state is State.BLOCKED
        await life.published()
        assert [told.blocked.code if told.blocked else "" for told in life.told] == ["", "api", ""]
