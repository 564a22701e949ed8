"""Whether EndpointSlices lead here: which endpoint counts, and what need not be asked twice."""

from __future__ import annotations

import pytest

from agent import times
from agent.act.slices import Slices
from agent.model import ServerError
from sandbox.standin import Answer
from sandbox.standin.resources import ENDPOINT_SLICES, Object
from tests.history.clock import virtual
from tests.support.cluster import Cluster
from tests.support.make import NAMESPACE, OWN, POD_IP, port, service
from tests.support.wire import Wire, wired


def scene(*, selector: dict[str, str]) -> tuple[Cluster, Wire, Slices]:
    """A Service with the target port 39001, and who looks at its slices."""
    cluster, wire = wired(service(selector=selector, ports=[port(39001)]))
    return cluster, wire, Slices(wire, wire.settings)


@pytest.mark.parametrize(
    ("wanted", "apart", "leads"),
    [
        pytest.param(0, [], True, id="any port"),
        pytest.param(39001, [], True, id="at that of another entry, which is not said to be one"),
        pytest.param(39001, ["more"], False, id="only where it is wanted"),
        pytest.param(39002, ["more"], True, id="not where it is wanted"),
        pytest.param(39002, ["more", "http-ui"], False, id="under other entries alone"),
    ],
)
@virtual
async def test_an_endpoint_elsewhere_is_at_another_port_than_is_wanted_and_not_under_another_entry(
    wanted: int, apart: list[str], leads: bool
) -> None:
    _, wire = wired(service(selector=OWN, ports=[port(39001), port(5005, name="more", number=81)]))
    assert await Slices(wire, wire.settings).lead_here("ui", wanted, apart) is leads


@virtual
async def test_another_pods_endpoints_do_not_lead_here() -> None:
    cluster, _, slices = scene(selector={"other": "yes"})
    cluster.add_pod("drv-2", {"other": "yes"}, ip="10.1.0.6")
    cluster.store.settle()
    assert {uid for uid, _ in cluster.routes()} - {cluster.uid}
    assert not await slices.lead_here("ui")


@pytest.mark.parametrize(
    ("endpoint", "leads"),
    [
        pytest.param({"addresses": [POD_IP]}, True, id="our address and no reference"),
        pytest.param({"addresses": ["10.1.0.6"]}, False, id="another address and no reference"),
        pytest.param(
            {"addresses": [POD_IP], "targetRef": {"kind": "Pod", "uid": "another"}},
            False,
            id="our address, as another Pod's",
        ),
    ],
)
@virtual
async def test_an_endpoint_without_a_reference_is_ours_by_its_address(endpoint: Object, leads: bool) -> None:
    cluster, _, slices = scene(selector={})
    mirrored: Object = {
        "metadata": {"name": "ui-mirrored", "labels": {"kubernetes.io/service-name": "ui"}},
        "addressType": "IPv4",
        "endpoints": [endpoint],
        "ports": [{"name": "http-ui", "port": 39001, "protocol": "TCP"}],
    }
    cluster.store.create(ENDPOINT_SLICES, NAMESPACE, mirrored)
    assert await slices.lead_here("ui") is leads


@virtual
async def test_what_was_seen_to_be_empty_is_asked_for_again_only_after_a_write() -> None:
    cluster, wire, slices = scene(selector={"nobody": "yes"})
    assert await slices.emptied("ui", cluster.service())
    assert await slices.emptied("ui", cluster.service())
    assert len(wire.calls) == 1
    slices.forget()
    assert await slices.emptied("ui", cluster.service())
    assert len(wire.calls) == 2
    cluster.patch({"metadata": {"labels": {"n": "1"}}})
    assert await slices.emptied("ui", cluster.service())
    assert len(wire.calls) == 3


@virtual
async def test_that_nothing_leads_elsewhere_says_nothing_of_the_port_that_is_wanted() -> None:
    cluster, wire, slices = scene(selector=OWN)
    assert await slices.emptied("ui", cluster.service(), 39001)
    assert not await slices.emptied("ui", cluster.service())
    assert len(wire.calls) == 1 + times.SLICE_READS


@virtual
async def test_a_failed_read_is_not_taken_for_an_empty_slice() -> None:
    cluster, wire, slices = scene(selector={"nobody": "yes"})
    wire.faults.plant(Answer(500), verb="list", times=1)
    with pytest.raises(ServerError):
        await slices.emptied("ui", cluster.service())
