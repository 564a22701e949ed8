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


@pytest.mark.parametrize(("asked", "leads"), [(0, True), (39001, True), (39002, False)])
@virtual
async def test_a_port_that_is_named_is_the_only_one_that_counts(asked: int, leads: bool) -> None:
    _, _, slices = scene(selector=OWN)
    assert await slices.lead_here("ui", asked) is leads


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
async def test_that_one_port_is_empty_says_nothing_of_the_others() -> None:
    cluster, wire, slices = scene(selector=OWN)
    assert await slices.emptied("ui", cluster.service(), 39002)
    assert not await slices.emptied("ui", cluster.service())
    assert len(wire.calls) == 1 + times.SLICE_READS


@virtual
async def test_a_failed_read_is_not_taken_for_an_empty_slice() -> None:
    cluster, wire, slices = scene(selector={"nobody": "yes"})
    wire.faults.plant(Answer(500), verb="list", times=1)
    with pytest.raises(ServerError):
        await slices.emptied("ui", cluster.service())
