"""Pods behind a Service: in which condition they count, and what the API makes of them without a kubelet."""

from __future__ import annotations

import pytest

from sandbox.apiclient import ApiClient, Object
from sandbox.objects import (
    create_pod,
    create_service,
    delete_pod,
    get_slices,
    pods,
    set_pod_status,
    wait_for_routes,
    wait_until,
)
from sandbox.services import endpoint_slices, of_service
from tests.contract.objects import UI, UI_ROUTE, controllers_caught_up


@pytest.fixture
async def pod(api: ApiClient, namespace: str) -> Object:
    """A Pod behind a Service called ``ui``."""
    created = await create_pod(api, namespace, "driver", labels=UI)
    await create_service(api, namespace, "ui", selector=UI)
    await wait_for_routes(api, namespace, "ui", UI_ROUTE)
    return created


async def wait_for_conditions(api: ApiClient, namespace: str, *expected: tuple[bool, bool, bool]) -> None:
    """Wait until the endpoints of ``ui`` are ready, serving, terminating as expected."""

    def conditions(slices: object) -> list[tuple[bool, bool, bool]]:
        assert isinstance(slices, list)
        return [
            (found["ready"], found["serving"], found["terminating"])
            for item in slices
            for found in (endpoint["conditions"] for endpoint in item["endpoints"] or [])
        ]

    await wait_until(
        api,
        endpoint_slices(namespace),
        lambda found: conditions(found) == list(expected),
        params=of_service("ui"),
    )


@pytest.mark.usefixtures("pod")
async def test_a_pod_that_is_not_ready_does_not_count(api: ApiClient, namespace: str) -> None:
    await set_pod_status(api, namespace, "driver", ready=False)
    await wait_for_conditions(api, namespace, (False, False, False))
    await set_pod_status(api, namespace, "driver", ready=True)
    await wait_for_conditions(api, namespace, (True, True, False))


async def test_it_counts_where_not_ready_addresses_are_published(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "driver", labels=UI, ready=False)
    await create_service(api, namespace, "ui", selector=UI, spec={"publishNotReadyAddresses": True})
    await wait_for_conditions(api, namespace, (True, False, False))


@pytest.mark.usefixtures("pod")
async def test_a_terminating_pod_serves_but_is_not_ready(api: ApiClient, namespace: str) -> None:
    await delete_pod(api, namespace, "driver", grace=30)
    await wait_for_conditions(api, namespace, (False, True, True))
    found = (await api.request("GET", pods(namespace, "driver"))).ok()["metadata"]
    assert found["deletionGracePeriodSeconds"] == 30
    await delete_pod(api, namespace, "driver")
    await wait_for_conditions(api, namespace)
    assert (await api.request("GET", pods(namespace, "driver"))).status == 404


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.usefixtures("pod")
async def test_a_pod_that_has_ended_is_removed(api: ApiClient, namespace: str, phase: str) -> None:
    await set_pod_status(api, namespace, "driver", phase=phase, ready=False)
    await wait_for_conditions(api, namespace)


@pytest.mark.usefixtures("pod")
async def test_two_pods_with_one_address_are_two_endpoints(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "neighbour", labels=UI)
    await wait_for_conditions(api, namespace, (True, True, False), (True, True, False))
    [found] = await get_slices(api, namespace, "ui")
    assert [endpoint["addresses"] for endpoint in found["endpoints"]] == [["10.1.0.1"], ["10.1.0.1"]]
    assert {endpoint["targetRef"]["name"] for endpoint in found["endpoints"]} == {"driver", "neighbour"}


async def test_a_pod_without_an_address_or_a_known_node_is_left_out(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "nowhere", labels=UI, node="no-such-node")
    pod = {
        "metadata": {"name": "pending", "labels": UI},
        "spec": {"nodeName": "node1", "containers": [{"name": "main", "image": "none"}]},
    }
    (await api.request("POST", pods(namespace), pod)).ok()
    await create_service(api, namespace, "ui", selector=UI)
    await controllers_caught_up(api, namespace)
    [found] = await get_slices(api, namespace, "ui")
    assert found["endpoints"] is None


async def test_a_selector_wants_every_one_of_its_labels(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "stranger", labels={**UI, "app": "y"}, ip="10.1.0.2")
    await create_pod(api, namespace, "unlabelled", labels=UI, ip="10.1.0.3")
    await create_pod(api, namespace, "driver", labels={**UI, "app": "x", "more": "z"})
    await create_service(api, namespace, "ui", selector={**UI, "app": "x"})
    await wait_for_routes(api, namespace, "ui", UI_ROUTE)


@pytest.mark.usefixtures("pod")
async def test_a_changed_label_takes_a_pod_out(api: ApiClient, namespace: str) -> None:
    patch = {"metadata": {"labels": {"spark-role": None}}}
    (await api.request("PATCH", pods(namespace, "driver"), patch)).ok()
    await wait_for_conditions(api, namespace)


async def test_a_pod_that_no_node_has_is_deleted_at_once(api: ApiClient, namespace: str) -> None:
    pod = {"metadata": {"name": "driver"}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    (await api.request("POST", pods(namespace), pod)).ok()
    (await api.request("DELETE", pods(namespace, "driver"))).ok()
    assert (await api.request("GET", pods(namespace, "driver"))).status == 404


async def test_under_host_network_a_declared_port_becomes_a_host_port(api: ApiClient, namespace: str) -> None:
    container = {"name": "main", "image": "none", "ports": [{"name": "ui", "containerPort": 4040}]}
    spec = {"hostNetwork": True, "containers": [container]}
    created = await create_pod(api, namespace, "driver", spec=spec)
    assert created["spec"]["containers"][0]["ports"][0]["hostPort"] == 4040


@pytest.mark.parametrize(
    ("container", "message"),
    [
        (
            {"ports": [{"containerPort": 0}]},
            "spec.containers[0].ports[0].containerPort: Required value",
        ),
        (
            {"ports": [{"containerPort": 1, "name": "sixteen-lettersx"}]},
            'spec.containers[0].ports[0].name: Invalid value: "sixteen-lettersx": must be no more than 15 characters',
        ),
        ({"image": ""}, "spec.containers[0].image: Required value"),
    ],
)
async def test_containers_are_judged(api: ApiClient, namespace: str, container: Object, message: str) -> None:
    spec = {"containers": [{"name": "main", "image": "none", **container}]}
    answer = await api.request("POST", pods(namespace), {"metadata": {"name": "driver"}, "spec": spec})
    assert (answer.status, answer.body["message"]) == (422, f'Pod "driver" is invalid: {message}')


async def test_an_unknown_service_account_is_forbidden(api: ApiClient, namespace: str) -> None:
    spec = {"serviceAccountName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    answer = await api.request("POST", pods(namespace), {"metadata": {"name": "driver"}, "spec": spec})
    assert answer.status == 403
    assert f"error looking up service account {namespace}/nobody" in answer.body["message"]


@pytest.mark.usefixtures("pod")
async def test_a_running_pod_keeps_its_spec(api: ApiClient, namespace: str) -> None:
    patch = {"spec": {"hostNetwork": True}}
    answer = await api.request("PATCH", pods(namespace, "driver"), patch)
    assert answer.status == 422
    assert "spec: Forbidden: pod updates may not change fields other than" in answer.body["message"]


async def test_status_is_changed_by_its_own_path_alone(api: ApiClient, namespace: str, pod: Object) -> None:
    patch = {"status": {"phase": "Failed"}}
    plain = await api.request("PATCH", pods(namespace, "driver"), patch)
    assert plain.ok()["metadata"]["resourceVersion"] == pod["metadata"]["resourceVersion"]
    assert plain.body["status"]["phase"] == "Running"
    by_path = await api.request("PATCH", pods(namespace, "driver") + "/status", patch)
    assert by_path.ok()["status"]["phase"] == "Failed"
    labelled = await api.request(
        "PATCH", pods(namespace, "driver") + "/status", {"metadata": {"labels": {"a": "b"}}}
    )
    assert labelled.ok()["metadata"]["labels"] == {**UI, "a": "b"}
    spec = await api.request(
        "PATCH", pods(namespace, "driver") + "/status", {"spec": {"terminationGracePeriodSeconds": 5}}
    )
    assert spec.ok() == labelled.body
