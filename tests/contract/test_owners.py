"""Owner references and the garbage collector: which owners hold a Service, and which lose it."""

from __future__ import annotations

import pytest

from sandbox.apiclient import ApiClient, Object
from sandbox.objects import create_pod, delete_pod, services
from tests.contract.objects import (
    UI,
    garbage_collected,
    get_service,
    owner,
    patch_service,
    service_body,
    service_gone,
)

STRANGERS = {
    "wrong uid": {"uid": "00000000-0000-0000-0000-000000000000"},
    "wrong name": {"name": "another"},
    "absent": {"name": "another", "uid": "00000000-0000-0000-0000-000000000000"},
    "wrong kind": {"kind": "ConfigMap"},
}


@pytest.fixture
async def pod(api: ApiClient, namespace: str) -> Object:
    """The Pod that is to own a Service."""
    return await create_pod(api, namespace, "driver", labels=UI)


async def test_a_service_goes_with_its_owner(api: ApiClient, namespace: str, pod: Object) -> None:
    body = service_body(ownerReferences=[owner(pod)])
    assert (await api.request("POST", services(namespace), body)).status == 201
    await delete_pod(api, namespace, "driver", grace=30)
    await garbage_collected(api, namespace)
    assert (await get_service(api, namespace))["metadata"]["ownerReferences"] == [owner(pod)]
    await delete_pod(api, namespace, "driver")
    await service_gone(api, namespace, "ui")


@pytest.mark.parametrize("changed", STRANGERS.values(), ids=STRANGERS.keys())
async def test_a_service_of_no_true_owner_is_made_and_then_deleted(
    api: ApiClient, namespace: str, pod: Object, changed: Object
) -> None:
    body = service_body(ownerReferences=[owner(pod, **changed)])
    assert (await api.request("POST", services(namespace), body)).status == 201
    await service_gone(api, namespace, "ui")


@pytest.mark.parametrize("changed", STRANGERS.values(), ids=STRANGERS.keys())
async def test_a_patch_to_no_true_owner_deletes_the_service_too(
    api: ApiClient, namespace: str, pod: Object, changed: Object
) -> None:
    (await api.request("POST", services(namespace), service_body())).ok()
    patch = {"metadata": {"ownerReferences": [owner(pod, **changed)]}}
    assert (await patch_service(api, namespace, "ui", patch)).status == 200
    await service_gone(api, namespace, "ui")


async def test_a_pod_of_another_namespace_is_no_owner(api: ApiClient, namespace: str, pod: Object) -> None:
    body = service_body(namespace, ownerReferences=[owner(pod)])
    assert (await api.request("POST", services("default"), body)).status == 201
    await service_gone(api, "default", namespace)


async def test_one_true_owner_of_two_is_enough_and_the_other_is_struck_off(
    api: ApiClient, namespace: str, pod: Object
) -> None:
    body = service_body(ownerReferences=[owner(pod), owner(pod, **STRANGERS["absent"])])
    (await api.request("POST", services(namespace), body)).ok()
    await garbage_collected(api, namespace)
    assert (await get_service(api, namespace))["metadata"]["ownerReferences"] == [owner(pod)]


async def test_a_kind_that_nobody_serves_is_kept(api: ApiClient, namespace: str, pod: Object) -> None:
    unknown = owner(pod, apiVersion="example.com/v1", kind="Unheard")
    (await api.request("POST", services(namespace), service_body(ownerReferences=[unknown]))).ok()
    await garbage_collected(api, namespace)
    assert (await get_service(api, namespace))["metadata"]["ownerReferences"] == [unknown]


async def test_two_controllers_are_refused(api: ApiClient, namespace: str, pod: Object) -> None:
    both = [owner(pod, controller=True), owner(pod, name="another", uid="another", controller=True)]
    answer = await api.request("POST", services(namespace), service_body(ownerReferences=both))
    assert answer.status == 422
    assert "Only one reference can have Controller set to true" in answer.body["message"]


@pytest.mark.parametrize("missing", ["apiVersion", "kind", "name", "uid"])
async def test_an_owner_must_be_named_in_full(
    api: ApiClient, namespace: str, pod: Object, missing: str
) -> None:
    named = {key: value for key, value in owner(pod).items() if key != missing}
    answer = await api.request("POST", services(namespace), service_body(ownerReferences=[named]))
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"] == f"metadata.ownerReferences.{missing}"


async def test_a_merge_patch_replaces_all_owners(api: ApiClient, namespace: str, pod: Object) -> None:
    other = await create_pod(api, namespace, "other", ip="10.1.0.2")
    (await api.request("POST", services(namespace), service_body(ownerReferences=[owner(other)]))).ok()
    patch = {"metadata": {"ownerReferences": [owner(pod)]}}
    answer = await patch_service(api, namespace, "ui", patch)
    assert answer.ok()["metadata"]["ownerReferences"] == [owner(pod)]
    await delete_pod(api, namespace, "other")
    await garbage_collected(api, namespace)
    assert (await get_service(api, namespace))["metadata"]["name"] == "ui"


async def test_a_finalizer_holds_a_deleted_service(api: ApiClient, namespace: str) -> None:
    body = service_body(finalizers=["example.com/held"])
    (await api.request("POST", services(namespace), body)).ok()
    (await api.request("DELETE", services(namespace, "ui"))).ok()
    assert "deletionTimestamp" in (await get_service(api, namespace))["metadata"]
    (await patch_service(api, namespace, "ui", {"metadata": {"finalizers": None}})).ok()
    assert (await api.request("GET", services(namespace, "ui"))).status == 404
