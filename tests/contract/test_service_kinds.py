"""Kinds of Services: headless, ExternalName, dual-stack, named ports."""

from __future__ import annotations

import pytest

from sandbox.apiclient import ApiClient, Object
from sandbox.objects import (
    create_pod,
    create_service,
    get_slices,
    routes,
    services,
    wait_for_routes,
    wait_until,
)
from sandbox.services import endpoint_slices, of_service
from tests.contract.objects import UI, UI_ROUTE, controllers_caught_up, patch_service, service_body

DUAL_STACK = "this cluster is not configured for dual-stack services"


async def test_a_headless_service_has_slices_like_others(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "driver", labels=UI)
    created = await create_service(
        api, namespace, "ui", selector=UI, target_port=4041, spec={"clusterIP": "None"}
    )
    assert created["spec"]["clusterIPs"] == ["None"]
    assert created["spec"]["ipFamilyPolicy"] == "SingleStack"
    [found] = await wait_for_routes(api, namespace, "ui", {("10.1.0.1", 4041)})
    assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


async def test_a_headless_service_without_a_selector_cannot_get_one(api: ApiClient, namespace: str) -> None:
    created = await create_service(api, namespace, "ui", spec={"clusterIP": "None"})
    assert created["spec"]["ipFamilyPolicy"] == "RequireDualStack"
    assert created["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    answer = await patch_service(api, namespace, "ui", {"spec": {"selector": UI}})
    assert answer.status == 422
    assert DUAL_STACK in answer.body["message"]


async def test_a_headless_service_needs_no_ports(api: ApiClient, namespace: str) -> None:
    body = service_body()
    body["spec"] = {"clusterIP": "None", "selector": UI}
    assert (await api.request("POST", services(namespace), body)).status == 201


@pytest.mark.parametrize("spec", [{"ipFamilyPolicy": "RequireDualStack"}, {"ipFamilies": ["IPv6"]}])
async def test_a_cluster_of_one_family_refuses_the_other(
    api: ApiClient, namespace: str, spec: Object
) -> None:
    body = service_body()
    body["spec"] |= spec
    answer = await api.request("POST", services(namespace), body)
    assert answer.status == 422
    assert (DUAL_STACK if "ipFamilyPolicy" in spec else "not configured on this cluster") in answer.body[
        "message"
    ]


async def test_preferring_both_families_is_allowed(api: ApiClient, namespace: str) -> None:
    created = await create_service(api, namespace, "ui", spec={"ipFamilyPolicy": "PreferDualStack"})
    assert created["spec"]["ipFamilies"] == ["IPv4"]


async def test_switching_to_external_name_leaves_slices_stale(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "driver", labels=UI)
    await create_service(api, namespace, "ui", selector=UI)
    await wait_for_routes(api, namespace, "ui", UI_ROUTE)
    external = {"type": "ExternalName", "externalName": "example.com"}
    answer = await patch_service(api, namespace, "ui", {"spec": external})
    assert "clusterIP" not in answer.ok()["spec"]
    await controllers_caught_up(api, namespace)
    assert routes(await get_slices(api, namespace, "ui")) == UI_ROUTE


async def test_an_external_name_has_no_slices(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "driver", labels=UI)
    external = {"type": "ExternalName", "externalName": "example.com"}
    await create_service(api, namespace, "ui", selector=UI, spec=external)
    await controllers_caught_up(api, namespace)
    assert await get_slices(api, namespace, "ui") == []


@pytest.mark.parametrize("address", ["10.96.77.77", "None"])
async def test_an_address_stays(api: ApiClient, namespace: str, address: str) -> None:
    await create_service(api, namespace, "ui")
    answer = await patch_service(api, namespace, "ui", {"spec": {"clusterIP": address}})
    assert answer.status == 422
    assert "may not change once set" in answer.body["message"]


@pytest.mark.parametrize(
    ("spec", "filled"),
    [
        ({}, {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}),
        ({"type": "NodePort"}, {"externalTrafficPolicy": "Cluster"}),
        ({"type": "LoadBalancer"}, {"allocateLoadBalancerNodePorts": True}),
    ],
)
async def test_what_is_left_out_is_filled_in(
    api: ApiClient, namespace: str, spec: Object, filled: Object
) -> None:
    created = await create_service(api, namespace, "ui", spec=spec)
    assert {key: created["spec"][key] for key in filled} == filled
    assert created["spec"]["ports"][0]["targetPort"] == created["spec"]["ports"][0]["port"] == 4040
    assert created["status"] == {"loadBalancer": {}}


async def test_a_named_target_port_is_that_of_each_pod(api: ApiClient, namespace: str) -> None:
    for number, name in enumerate(("one", "two"), start=1):
        ports = [{"name": "web", "containerPort": 4040 + number}]
        container = {"name": "main", "image": "none", "ports": ports}
        await create_pod(
            api, namespace, name, labels=UI, ip=f"10.1.0.{number}", spec={"containers": [container]}
        )
    await create_service(api, namespace, "ui", selector=UI, target_port="web")
    found = await wait_until(
        api, endpoint_slices(namespace), lambda found: len(found) == 2, params=of_service("ui")
    )
    assert sorted(pair for item in found for pair in routes([item])) == [
        ("10.1.0.1", 4041),
        ("10.1.0.2", 4042),
    ]
    await patch_service(
        api, namespace, "ui", {"spec": {"ports": [{"name": "spark-ui", "port": 4040, "targetPort": 39001}]}}
    )
    await wait_for_routes(api, namespace, "ui", {("10.1.0.1", 39001), ("10.1.0.2", 39001)})


async def test_a_name_that_no_pod_declares_gives_no_ports(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "driver", labels=UI)
    await create_service(api, namespace, "ui", selector=UI, target_port="web")
    [found] = await wait_until(
        api,
        endpoint_slices(namespace),
        lambda found: any(item["endpoints"] for item in found),
        params=of_service("ui"),
    )
    assert found["ports"] is None


async def test_app_protocol_and_name_reach_the_slice(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "driver", labels=UI)
    port = {"name": "http-ui", "port": 80, "targetPort": 4040, "appProtocol": "http"}
    await create_service(api, namespace, "ui", selector=UI, spec={"ports": [port]})
    [found] = await wait_for_routes(api, namespace, "ui", UI_ROUTE)
    assert found["ports"] == [{"name": "http-ui", "port": 4040, "protocol": "TCP", "appProtocol": "http"}]
