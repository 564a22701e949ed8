"""Withdrawing a Service: what empties its EndpointSlices, and what leaves them stale."""

from __future__ import annotations

import pytest

from sandbox.apiclient import JSON_PATCH, ApiClient, Object
from sandbox.objects import (
    create_pod,
    create_service,
    delete_pod,
    get_slices,
    routes,
    services,
    wait_for_routes,
    wait_until,
)
from sandbox.services import endpoint_slices, of_service
from tests.contract.objects import (
    PARKED,
    UI,
    UI_ROUTE,
    controllers_caught_up,
    get_service,
    patch_service,
)

MANAGER = "endpointslice.kubernetes.io/managed-by"
MIRRORING = "endpointslicemirroring-controller.k8s.io"


@pytest.fixture
async def pod(api: ApiClient, namespace: str) -> Object:
    """A Pod behind a Service called ``ui`` that routes to it."""
    created = await create_pod(api, namespace, "driver", labels=UI)
    await create_service(api, namespace, "ui", selector=UI)
    await wait_for_routes(api, namespace, "ui", UI_ROUTE)
    return created


async def mirrored(api: ApiClient, namespace: str) -> list[Object]:
    """Return the slices once there is a mirrored one among them: the controllers have seen the selector go."""
    return await wait_until(
        api,
        endpoint_slices(namespace),
        lambda found: any(item["metadata"]["labels"][MANAGER] == MIRRORING for item in found),
        params=of_service("ui"),
    )


async def test_a_slice_tells_pod_port_and_conditions(api: ApiClient, namespace: str, pod: Object) -> None:
    await patch_service(
        api,
        namespace,
        "ui",
        {"metadata": {"labels": {"a": "b"}}, "spec": {"ports": [{"port": 80, "targetPort": 4041}]}},
    )
    [found] = await wait_for_routes(api, namespace, "ui", {("10.1.0.1", 4041)})
    assert found["addressType"] == "IPv4"
    assert found["metadata"]["labels"] == {
        "a": "b",
        "kubernetes.io/service-name": "ui",
        MANAGER: "endpointslice-controller.k8s.io",
    }
    service = await get_service(api, namespace)
    assert [(ref["kind"], ref["uid"]) for ref in found["metadata"]["ownerReferences"]] == [
        ("Service", service["metadata"]["uid"])
    ]
    assert found["ports"] == [{"name": "", "port": 4041, "protocol": "TCP"}]
    [endpoint] = found["endpoints"]
    assert endpoint["addresses"] == ["10.1.0.1"]
    assert endpoint["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert endpoint["nodeName"] == "node1"
    assert endpoint["targetRef"] == {
        "kind": "Pod",
        "namespace": namespace,
        "name": "driver",
        "uid": pod["metadata"]["uid"],
    }


@pytest.mark.parametrize(
    "removal", [{"selector": None}, {"selector": {"spark-role": None}}], ids=["selector", "last-key"]
)
@pytest.mark.usefixtures("pod")
async def test_removing_the_selector_leaves_stale_slices(
    api: ApiClient, namespace: str, removal: Object
) -> None:
    assert (await patch_service(api, namespace, "ui", {"spec": removal})).status == 200
    found = await mirrored(api, namespace)
    assert len(found) == 2
    assert all(routes([item]) == UI_ROUTE for item in found)
    await delete_pod(api, namespace, "driver")
    await controllers_caught_up(api, namespace)
    assert [routes([item]) for item in await get_slices(api, namespace, "ui")] == [UI_ROUTE, UI_ROUTE]


@pytest.mark.usefixtures("pod")
async def test_replacing_the_selector_by_an_empty_one_leaves_stale_slices(
    api: ApiClient, namespace: str
) -> None:
    step = [{"op": "replace", "path": "/spec/selector", "value": {}}]
    answer = await api.request("PATCH", services(namespace, "ui"), step, content_type=JSON_PATCH)
    assert "selector" not in answer.ok()["spec"]
    assert all(routes([item]) == UI_ROUTE for item in await mirrored(api, namespace))


@pytest.mark.usefixtures("pod")
async def test_an_empty_selector_in_a_merge_patch_changes_nothing(api: ApiClient, namespace: str) -> None:
    before = await get_service(api, namespace)
    answer = await patch_service(api, namespace, "ui", {"spec": {"selector": {}}})
    assert answer.ok() == before


@pytest.mark.usefixtures("pod")
async def test_parking_empties_the_slice(api: ApiClient, namespace: str) -> None:
    await patch_service(api, namespace, "ui", {"spec": {"selector": {"spark-role": None, **PARKED}}})
    [found] = await wait_for_routes(api, namespace, "ui", set())
    assert (found["endpoints"], found["ports"]) == (None, None)


@pytest.mark.usefixtures("pod")
async def test_a_parked_service_stays_empty_without_a_selector(api: ApiClient, namespace: str) -> None:
    await patch_service(api, namespace, "ui", {"spec": {"selector": {"spark-role": None, **PARKED}}})
    await wait_for_routes(api, namespace, "ui", set())
    await patch_service(api, namespace, "ui", {"spec": {"selector": None}})
    await controllers_caught_up(api, namespace)
    [found] = await get_slices(api, namespace, "ui")
    assert found["endpoints"] is None


@pytest.mark.usefixtures("pod")
async def test_parking_empties_stale_slices_too(api: ApiClient, namespace: str) -> None:
    await patch_service(api, namespace, "ui", {"spec": {"selector": None}})
    await mirrored(api, namespace)
    await patch_service(api, namespace, "ui", {"spec": {"selector": PARKED}})
    await wait_for_routes(api, namespace, "ui", set())
    await wait_until(api, endpoint_slices(namespace), lambda found: len(found) == 1, params=of_service("ui"))


async def test_a_service_without_a_selector_has_no_slice_until_it_gets_one(
    api: ApiClient, namespace: str
) -> None:
    await create_pod(api, namespace, "driver", labels=UI)
    await create_service(api, namespace, "ui")
    await controllers_caught_up(api, namespace)
    assert await get_slices(api, namespace, "ui") == []
    spec = {"selector": UI, "ports": [{"name": "spark-ui", "port": 4040, "targetPort": 39001}]}
    await patch_service(api, namespace, "ui", {"spec": spec})
    await wait_for_routes(api, namespace, "ui", {("10.1.0.1", 39001)})


@pytest.mark.usefixtures("pod")
async def test_the_same_slice_is_filled_again(api: ApiClient, namespace: str) -> None:
    [before] = await get_slices(api, namespace, "ui")
    await patch_service(api, namespace, "ui", {"spec": {"selector": {"spark-role": None, **PARKED}}})
    await wait_for_routes(api, namespace, "ui", set())
    unpark = {"selector": {**UI, **dict.fromkeys(PARKED)}}
    await patch_service(api, namespace, "ui", {"spec": unpark})
    [after] = await wait_for_routes(api, namespace, "ui", UI_ROUTE)
    assert after["metadata"]["name"] == before["metadata"]["name"]


@pytest.mark.usefixtures("pod")
async def test_deleting_the_service_deletes_its_slices(api: ApiClient, namespace: str) -> None:
    (await api.request("DELETE", services(namespace, "ui"))).ok()
    await wait_until(api, endpoint_slices(namespace), lambda found: not found, params=of_service("ui"))
