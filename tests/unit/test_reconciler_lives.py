"""Crashes and restarts of the agent, former holders, and former owners of the Service."""

from __future__ import annotations

import asyncio

import pytest

from agent import times
from agent.model import DriverEnded, HookStopping, State
from sandbox.standin import Answer, Hold
from tests.history.clock import virtual
from tests.support.cluster import Cluster
from tests.support.life import alive, serving
from tests.support.make import LABELS, MARK, OTHER_APP, bound, port, scan, service, settings
from tests.support.wire import Wire, wired


def epoch(cluster: Cluster) -> str:
    live = cluster.service()
    assert live is not None
    found = live["metadata"].get("annotations", {}).get("spark-ui-agent/epoch", "")
    assert isinstance(found, str)
    return found


@virtual
async def test_an_agent_that_restarts_beside_a_running_driver_fences_once_and_serves_on() -> None:
    cluster, wire = wired()
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.published()
    await asyncio.sleep(1)
    assert cluster.ports() == {39001}
    assert epoch(cluster) == ""

    wire.forget()
    async with serving(wire) as life:
        assert len(wire.writes) == 1
        assert epoch(cluster) != ""
        await asyncio.sleep(1)
        assert cluster.ports() == {39001}
        wire.forget()
        await asyncio.sleep(3 * times.DRIFT)
        assert wire.writes == []


@virtual
async def test_an_agent_that_restarts_after_the_ui_has_gone_parks() -> None:
    cluster, wire = wired()
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.published()
    await asyncio.sleep(1)

    async with alive(wire) as life:
        life.tell(scan())
        await life.withdrawn()
        assert cluster.ports() == set()


@pytest.mark.parametrize("fenced_at_once", [True, False])
@virtual
async def test_a_write_of_a_former_life_cannot_land_late(fenced_at_once: bool) -> None:
    cluster, wire = wired()
    async with serving(wire) as life:
        life.tell(HookStopping(7))
        await life.withdrawn()
        hold = Hold()
        wire.faults.plant(hold, verb="patch", times=1)
        life.tell(bound(39001, inode=2))
        await hold.reached.wait()

    if not fenced_at_once:
        wire.faults.plant(Answer(429, retry_after=1), verb="patch", times=1)
    async with alive(wire) as life:
        life.tell(scan())
        await life.withdrawn()
        hold.release()
        await asyncio.sleep(1)
        assert cluster.ports() == set()
        assert life.gone


@virtual
async def test_a_restart_during_the_release_finishes_it() -> None:
    cluster, wire = wired()
    async with serving(wire) as life:
        hold = Hold()
        wire.faults.plant(hold, verb="delete", times=1)
        life.tell(DriverEnded("Completed"))
        await hold.reached.wait()
    async with alive(wire) as life:
        life.tell(DriverEnded("Completed"))
        await life.withdrawn()
        assert cluster.service() is None
        assert life.told[-1].released
        hold.release()


HOLDER = "spark-ui-agent/holder"


def held_by(name: str, uid: str) -> dict[str, str]:
    return {HOLDER: f"{name}/{uid}", **MARK}


@pytest.mark.parametrize(
    ("end", "served"),
    [
        pytest.param("lives", False, id="it lives"),
        pytest.param("Succeeded", True, id="it has succeeded"),
        pytest.param("Failed", True, id="it has failed"),
        pytest.param("removed", True, id="it is gone"),
        pytest.param("another", True, id="another Pod has its name"),
    ],
)
@virtual
async def test_a_former_holders_service_is_taken_only_once_it_is_over(end: str, served: bool) -> None:
    cluster = Cluster()
    former = cluster.add_pod("drv-0", {"old": "yes"}, ip="10.1.0.7")
    cluster.add_service(service(selector={"uid-tag": "drv-1"}, annotations=held_by("drv-0", former)))
    if end in ("Succeeded", "Failed"):
        cluster.end_pod("drv-0", end)
    if end in ("removed", "another"):
        cluster.remove_pod("drv-0")
    if end == "another":
        cluster.add_pod("drv-0", {"old": "no"}, ip="10.1.0.8")
    revision = cluster.revision()
    wire = Wire(cluster, settings(uid=cluster.uid))
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        await asyncio.sleep(1)
        assert (life.state is State.PUBLISHED) is served
        assert (cluster.revision() != revision) is served
        if not served:
            cluster.end_pod("drv-0")
            await life.published(within=1.3 * times.RETRY_REFUSED_MAX)


@pytest.mark.parametrize("end", ["Failed", "removed"])
@virtual
async def test_a_service_of_a_fixed_name_is_taken_over_after_an_unclean_end(end: str) -> None:
    cluster = Cluster()
    other = {"spark-app-selector": OTHER_APP, "spark-role": "driver"}
    former = cluster.add_pod("drv-0", other, ip="10.1.0.7")
    cluster.add_service(service())
    theirs = Wire(cluster, settings(uid=former, name="drv-0", app=OTHER_APP, ADOPT="any"))
    async with serving(theirs):
        await asyncio.sleep(1)
        assert cluster.routes() == {(former, 39001)}

    mine = Wire(cluster, settings(uid=cluster.uid, ADOPT="any"))
    async with alive(mine) as life:
        life.tell(bound(39002))
        await life.settled()
        blocked = life.told[-1].blocked
        assert blocked is not None
        assert blocked.code == "foreign"
        assert mine.writes == []

        if end == "removed":
            cluster.remove_pod("drv-0")
        else:
            cluster.end_pod("drv-0", end)
        await life.published(within=1.3 * times.RETRY_REFUSED_MAX)
        await asyncio.sleep(1)
        assert cluster.routes() == {(cluster.uid, 39002)}


def owned_by(*owners: tuple[str, str]) -> dict[str, object]:
    return {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid} for name, uid in owners
        ]
    }


@virtual
async def test_a_dead_pods_service_is_made_anew_before_garbage_collection_takes_it() -> None:
    cluster = Cluster()
    former = cluster.add_pod("drv-0", {"old": "yes"}, ip="10.1.0.7")
    uid = cluster.add_service(service(selector={"uid-tag": "drv-1"}, metadata=owned_by(("drv-0", former))))
    cluster.end_pod("drv-0")
    wire = Wire(cluster, settings(uid=cluster.uid))
    async with serving(wire):
        live = cluster.service()
        assert live is not None
        assert live["metadata"]["uid"] != uid
        assert [owner["uid"] for owner in live["metadata"]["ownerReferences"]] == [cluster.uid]
        assert [call[0] for call in wire.writes] == ["delete", "create", "patch"]
        cluster.remove_pod("drv-0")
        await asyncio.sleep(1)
        assert cluster.ports() == {39001}


@virtual
async def test_a_live_holder_keeps_its_service_although_the_pod_that_owns_it_is_over() -> None:
    cluster = Cluster()
    owner = cluster.add_pod("launcher", {"old": "yes"}, ip="10.1.0.7")
    cluster.end_pod("launcher")
    rival = cluster.add_pod("drv-2", {**LABELS, "spark-app-selector": OTHER_APP}, ip="10.1.0.8")
    cluster.add_service(
        service(
            selector={"uid-tag": "drv-1"},
            annotations={HOLDER: f"drv-2/{rival}"},
            metadata=owned_by(("launcher", owner)),
        )
    )
    revision = cluster.revision()
    wire = Wire(cluster, settings(uid=cluster.uid, ADOPT="any"))
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        assert life.state is State.BLOCKED
        await asyncio.sleep(600)
    assert cluster.revision() == revision


@virtual
async def test_a_dead_holders_service_that_a_live_launcher_owns_is_taken_and_kept() -> None:
    cluster = Cluster()
    owner = cluster.add_pod("launcher", {"old": "yes"}, ip="10.1.0.7")
    uid = cluster.add_service(
        service(
            selector={"uid-tag": "drv-1"},
            annotations={HOLDER: "drv-0/u0"},
            metadata=owned_by(("launcher", owner)),
        )
    )
    wire = Wire(cluster, settings(uid=cluster.uid))
    async with serving(wire):
        live = cluster.service()
        assert live is not None
        assert live["metadata"]["uid"] == uid


@virtual
async def test_two_owners_of_which_one_lives_keep_the_service() -> None:
    cluster = Cluster()
    dead = cluster.add_pod("drv-0", {"old": "yes"}, ip="10.1.0.7")
    lives = cluster.add_pod("launcher", {"old": "yes"}, ip="10.1.0.8")
    uid = cluster.add_service(
        service(selector={"uid-tag": "drv-1"}, metadata=owned_by(("drv-0", dead), ("launcher", lives)))
    )
    cluster.end_pod("drv-0")
    wire = Wire(cluster, settings(uid=cluster.uid))
    async with serving(wire):
        live = cluster.service()
        assert live is not None
        assert live["metadata"]["uid"] == uid


@virtual
async def test_two_agents_with_one_name_for_two_services_do_not_fight() -> None:
    cluster = Cluster()
    second = cluster.add_pod(
        "drv-2", {"spark-app-selector": OTHER_APP, "spark-role": "driver"}, ip="10.1.0.6"
    )
    mine = Wire(cluster, settings(uid=cluster.uid))
    theirs = Wire(cluster, settings(uid=second, name="drv-2", app=OTHER_APP))
    async with alive(mine) as first, alive(theirs, seed=1) as other:
        first.tell(bound(39001))
        await first.published()
        other.tell(bound(39002))
        await other.settled()
        assert other.state is State.BLOCKED
        await asyncio.sleep(10 * times.DRIFT)
        assert theirs.writes == []
        assert cluster.routes() == {(cluster.uid, 39001)}
        assert len(mine.writes) == 2

        first.tell(DriverEnded("Completed"))
        await first.withdrawn()
        await other.published(within=1.3 * times.RETRY_REFUSED_MAX)
        await asyncio.sleep(1)
        assert cluster.routes() == {(second, 39002)}


@virtual
async def test_two_targets_on_one_number_survive_a_life() -> None:
    cluster = Cluster()
    udp = port(81, name="udp", number=80, protocol="UDP")
    cluster.add_service(service(selector={"uid-tag": "drv-1"}, ports=[port(4040, name="tcp"), udp]))
    wire = Wire(cluster, settings(uid=cluster.uid))
    async with serving(wire) as life:
        await asyncio.sleep(1)
        assert cluster.ports() == {39001, 81}
        life.tell(DriverEnded("Completed"))
        await life.withdrawn()
        live = cluster.service()
        assert live is not None
        assert live["spec"]["ports"] == [port(39001, name="tcp"), udp]
