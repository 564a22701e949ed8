"""The reconciler against the stand-in's store: what it writes in which order, and when it writes nothing."""

from __future__ import annotations

import asyncio

import pytest

from agent import times
from agent.decide.ownership import CREATED_BY
from agent.model import Draining, DriverEnded, HookStopping, State
from sandbox.standin import Hold, When
from tests.history.clock import virtual
from tests.support.cluster import Cluster
from tests.support.life import alive, serving
from tests.support.make import APP, MARK, OTHER_APP, OWN, POD, bound, port, scan, service, settings
from tests.support.wire import Wire, wired


@virtual
async def test_a_missing_service_is_made_parked_then_published_then_parked_then_deleted() -> None:
    cluster, wire = wired()
    async with alive(wire) as life:
        life.tell(scan(39001))
        await life.settled()
        assert [call[:2] for call in wire.calls] == [("get", POD), ("get", "ui")]

        life.tell(bound(39001))
        await life.published()
        assert [call[0] for call in wire.writes] == ["create", "patch"]
        created = wire.writes[0][2]
        assert created is not None
        assert created["spec"] == {
            "type": "ClusterIP",
            "selector": {"spark-ui-agent/parked": cluster.uid},
            "ports": [{"name": "spark-ui", "port": 4040, "protocol": "TCP", "targetPort": 39001}],
        }
        await asyncio.sleep(1)
        assert cluster.ports() == {39001}

        wire.forget()
        life.tell(HookStopping(7))
        await life.withdrawn()
        assert cluster.ports() == set()
        assert [call[0] for call in wire.writes] == ["patch"]
        assert life.state is State.PARKED

        wire.forget()
        life.tell(DriverEnded("Completed"))
        await life.withdrawn()
        assert [call[:2] for call in wire.writes] == [("delete", "ui")]
        assert life.told[-1].released
        assert cluster.service() is None


@virtual
async def test_another_ui_of_the_pod_is_published_once_the_former_ports_endpoints_are_gone() -> None:
    cluster, wire = wired()
    async with alive(wire) as life:
        life.tell(scan(39001, 39002))
        life.tell(bound(39001, pid=7))
        life.tell(bound(39002, pid=8))
        await life.published()
        await asyncio.sleep(1)
        assert cluster.ports() == {39002}
        life.tell(HookStopping(8))
        await life.published()
        # Here the receiver answers JVM 8, which then closes 39002.
        assert cluster.ports() == {39001}


@virtual
async def test_an_existing_service_is_published_by_one_patch_and_its_other_fields_survive() -> None:
    cluster, wire = wired(service(selector={}, annotations={**MARK, "team": "x"}, sessionAffinity="ClientIP"))
    before = cluster.service()
    assert before is not None
    async with serving(wire) as life:
        assert [call[:2] for call in wire.writes] == [("patch", "ui")]

        after = cluster.service()
        assert after is not None
        assert after["spec"] == {**before["spec"], "selector": OWN, "ports": [port(39001)]}
        assert after["metadata"]["labels"] == {"k": "v"}
        assert after["metadata"]["annotations"]["team"] == "x"

        life.tell(DriverEnded("Completed"))
        await life.withdrawn()
        last = cluster.service()
        assert last is not None
        assert last["spec"] == {
            **before["spec"],
            "selector": {"spark-ui-agent/parked": cluster.uid},
            "ports": [port(39001)],
        }
        assert last["metadata"]["annotations"] == {"team": "x"}


@virtual
async def test_gone_is_told_only_when_the_slices_are_empty() -> None:
    cluster, wire = wired(settle=0.4)
    async with serving(wire) as life:
        await asyncio.sleep(1)
        looking = Hold()
        wire.faults.plant(looking, verb="list", when=When.AFTER, times=1)
        life.tell(HookStopping(7))
        await looking.reached.wait()
        assert len(wire.writes) == 3
        assert cluster.ports() == {39001}
        assert not life.gone
        looking.release()
        await life.withdrawn()
        assert cluster.ports() == set()


@virtual
async def test_slices_that_never_empty_are_asked_for_a_bounded_number_of_times_and_never_called_gone() -> (
    None
):
    _, wire = wired()
    async with serving(wire) as life:
        await asyncio.sleep(1)
        wire.settle = 3600
        wire.forget()
        life.tell(HookStopping(7))
        await life.settled()
        assert [call[0] for call in wire.calls].count("list") == times.SLICE_READS
        assert not life.gone
        assert len(wire.writes) == 1
        await asyncio.sleep(60)
        assert not life.gone
        assert len(wire.writes) == 1


@pytest.mark.parametrize("parked", [False, True])
@virtual
async def test_in_steady_state_nothing_is_written_and_there_is_one_read_for_each_look(parked: bool) -> None:
    cluster, wire = wired()
    async with serving(wire) as life:
        if parked:
            life.tell(HookStopping(7))
            await life.withdrawn()
        await asyncio.sleep(1)
        wire.forget()
        revision = cluster.store.ledger.revision
        await asyncio.sleep(10 * times.DRIFT)
        assert wire.writes == []
        assert {call[:2] for call in wire.calls} == {("get", "ui")}
        assert 8 <= len(wire.calls) <= 13
        assert cluster.store.ledger.revision == revision


@virtual
async def test_nothing_is_written_before_there_is_proof() -> None:
    _, wire = wired(service(), ADOPT="any")
    async with alive(wire) as life:
        life.tell(scan(4040))
        await asyncio.sleep(3600)
        assert wire.writes == []

        life.tell(bound(4040))
        await life.published()
        assert len(wire.writes) == 1


@virtual
async def test_a_service_that_leads_to_an_unproven_port_of_ours_is_parked_at_once() -> None:
    cluster = Cluster()
    cluster.add_service(service(selector={"uid-tag": "drv-1"}))
    assert cluster.ports() == {4040}
    wire = Wire(cluster, settings(uid=cluster.uid))
    async with alive(wire) as life:
        await life.settled()
        assert life.gone
        assert cluster.ports() == set()


@virtual
async def test_a_service_without_a_selector_whose_slices_went_stale_is_parked() -> None:
    cluster = Cluster()
    cluster.add_service(service(selector={"uid-tag": "drv-1"}, annotations=MARK))
    cluster.patch({"spec": {"selector": None}})
    cluster.store.settle()
    assert cluster.ports() == {4040}
    wire = Wire(cluster, settings(uid=cluster.uid))
    async with alive(wire) as life:
        await life.settled()
        assert life.gone
        assert cluster.ports() == set()


@virtual
async def test_a_foreign_applications_service_is_never_written() -> None:
    cluster = Cluster()
    cluster.add_pod("drv-2", {"spark-app-selector": OTHER_APP, "spark-role": "driver"}, ip="10.1.0.6")
    cluster.add_service(service(selector={"spark-app-selector": OTHER_APP}))
    revision = cluster.revision()
    wire = Wire(cluster, settings(uid=cluster.uid, ADOPT="any"))
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        assert life.state is State.BLOCKED
        assert life.told[-1].blocked is not None
        assert life.told[-1].blocked.code == "foreign"
        life.tell(Draining("SIGTERM"))
        await life.withdrawn()
    assert cluster.revision() == revision
    assert wire.writes == []


@virtual
async def test_what_was_blocked_is_published_once_a_person_has_acted() -> None:
    cluster, wire = wired(service())
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        assert life.state is State.BLOCKED
        await asyncio.sleep(3600)
        reads = len(wire.calls)
        assert 3600 / (1.2 * times.RETRY_REFUSED_MAX) < reads < 100

        cluster.patch({"spec": {"selector": {"ui-none": None, "uid-tag": "drv-1"}}})
        await life.published(within=2 * times.RETRY_REFUSED_MAX)
        await asyncio.sleep(1)
        assert cluster.ports() == {39001}


@virtual
async def test_drift_is_corrected_with_one_write() -> None:
    cluster, wire = wired()
    async with serving(wire):
        cluster.patch({"spec": {"selector": {"spark-role": None, "app": "operator"}}})
        wire.forget()
        await asyncio.sleep(2 * times.DRIFT)
        assert len(wire.writes) == 1
        assert cluster.ports() == {39001}


@virtual
async def test_a_deleted_service_is_made_anew() -> None:
    cluster, wire = wired()
    async with serving(wire):
        cluster.delete()
        await asyncio.sleep(2 * times.DRIFT)
        assert cluster.ports() == {39001}


@virtual
async def test_a_created_service_goes_with_its_pod_and_no_earlier() -> None:
    cluster, wire = wired()
    async with serving(wire):
        await asyncio.sleep(1)
        live = cluster.service()
        assert live is not None
        assert live["metadata"]["annotations"][CREATED_BY] == f"{POD}/{cluster.uid}"
    cluster.remove_pod(POD)
    await asyncio.sleep(1)
    assert cluster.service() is None


@virtual
async def test_the_service_is_found_by_labels() -> None:
    cluster = Cluster()
    cluster.add_service(service(selector={"uid-tag": "drv-1"}), name="found")
    wire = Wire(cluster, settings(uid=cluster.uid, SERVICE_LABELS="k=v"))
    async with serving(wire) as life:
        assert life.told[-1].service == "found"
        await asyncio.sleep(1)
        assert cluster.ports("found") == {39001}

        # Another one with these labels, and ours without: what leads here stays ours to withdraw.
        cluster.add_service(service(), name="another")
        life.tell(HookStopping(7))
        await life.withdrawn()
        assert cluster.ports("found") == set()


@virtual
async def test_of_several_services_with_the_labels_none_is_taken() -> None:
    cluster = Cluster()
    cluster.add_service(service(), name="found")
    cluster.add_service(service(), name="another")
    wire = Wire(cluster, settings(uid=cluster.uid, SERVICE_LABELS="k=v"))
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        blocked = life.told[-1].blocked
        assert blocked is not None
        assert "another, found" in blocked.found
        assert wire.writes == []


@virtual
async def test_an_operators_service_comes_before_our_own_name_but_what_was_taken_stays() -> None:
    cluster = Cluster()
    labels = {**OWN, "sparkoperator.k8s.io/app-name": "etl"}
    uid = cluster.add_pod("drv-9", labels, ip="10.1.0.9")
    wire = Wire(cluster, settings(SERVICE="", uid=uid, name="drv-9"))
    async with serving(wire) as life:
        assert life.told[-1].service == "drv-9-ui"

        cluster.add_service(
            service(selector={"spark-app-selector": APP, "spark-role": "driver"}), name="etl-ui-svc"
        )
        life.tell(HookStopping(7))
        await life.withdrawn()
        assert cluster.routes("drv-9-ui") == set()

    cluster.delete("drv-9-ui")
    async with serving(wire) as life:
        assert life.told[-1].service == "etl-ui-svc"
