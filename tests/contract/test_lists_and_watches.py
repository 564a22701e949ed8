"""Lists, watches and Events: what is selected, and which events a client sees."""

from __future__ import annotations

import pytest

from sandbox.apiclient import ApiClient, ApiError, Object
from sandbox.objects import create_pod, create_service, events, pods, services
from tests.contract.objects import UI, patch_service, service_body

LABELLED = {"labelSelector": "app=x"}


async def seen(api: ApiClient, namespace: str, params: dict[str, str]) -> list[tuple[str, str]]:
    """Return type and name of a watch's events, up to the one that says that the Service ``ui`` is gone."""
    found: list[tuple[str, str]] = []
    async with api.watch(services(namespace), params) as events_of_services:
        await api.request("DELETE", services(namespace, "ui"))
        async for event in events_of_services:
            found.append((event.type, event.object["metadata"]["name"]))
            if found[-1] == ("DELETED", "ui"):
                break
    return found


async def version(api: ApiClient, namespace: str) -> str:
    """Return the version of the list of Services, to watch from."""
    listed = (await api.request("GET", services(namespace))).ok()
    found: str = listed["metadata"]["resourceVersion"]
    return found


async def test_a_list_names_its_kind_once(api: ApiClient, namespace: str) -> None:
    created = await create_service(api, namespace, "ui")
    listed = (await api.request("GET", services(namespace))).ok()
    assert (listed["kind"], listed["apiVersion"]) == ("ServiceList", "v1")
    del created["kind"], created["apiVersion"]
    assert listed["items"] == [created]
    assert int(listed["metadata"]["resourceVersion"]) >= int(created["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("app=x", ["a"]),
        ("app==x", ["a"]),
        ("app", ["a", "b"]),
        ("!app", ["c"]),
        ("app!=x", ["b", "c"]),
        ("app in (x,y)", ["a", "b"]),
        ("app notin (x)", ["b", "c"]),
        ("app,tier=1", ["a"]),
    ],
)
async def test_label_selectors(api: ApiClient, namespace: str, selector: str, names: list[str]) -> None:
    labels: dict[str, Object] = {"a": {"app": "x", "tier": "1"}, "b": {"app": "y"}, "c": {}}
    for name, found in labels.items():
        (await api.request("POST", services(namespace), service_body(name, labels=found))).ok()
    listed = await api.request("GET", services(namespace), params={"labelSelector": selector})
    assert [item["metadata"]["name"] for item in listed.ok()["items"]] == names


@pytest.mark.parametrize(
    "params", [{"fieldSelector": "spec.unheardOf=1"}, {"labelSelector": "a b"}], ids=["field", "label"]
)
async def test_a_selector_that_is_not_understood_is_a_bad_request(
    api: ApiClient, namespace: str, params: dict[str, str]
) -> None:
    answer = await api.request("GET", services(namespace), params=params)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


async def test_pods_are_selected_by_phase_and_node(api: ApiClient, namespace: str) -> None:
    await create_pod(api, namespace, "one")
    await create_pod(api, namespace, "two", phase="Failed", ready=False)
    params = {"fieldSelector": "status.phase=Failed,spec.nodeName=node1"}
    listed = await api.request("GET", pods(namespace), params=params)
    assert [item["metadata"]["name"] for item in listed.ok()["items"]] == ["two"]


@pytest.mark.parametrize("params", [{}, {"resourceVersion": "0"}], ids=["no-version", "0"])
async def test_a_watch_from_nowhere_begins_with_what_is_there(
    api: ApiClient, namespace: str, params: dict[str, str]
) -> None:
    await create_service(api, namespace, "ui")
    assert await seen(api, namespace, params) == [("ADDED", "ui"), ("DELETED", "ui")]


async def test_a_watch_from_a_version_tells_what_came_after(api: ApiClient, namespace: str) -> None:
    await create_service(api, namespace, "before")
    start = await version(api, namespace)
    await create_service(api, namespace, "ui")
    await patch_service(api, namespace, "ui", {"metadata": {"labels": {"a": "1"}}})
    await patch_service(api, namespace, "ui", {"metadata": {"labels": {"a": "1"}}})
    assert await seen(api, namespace, {"resourceVersion": start}) == [
        ("ADDED", "ui"),
        ("MODIFIED", "ui"),
        ("DELETED", "ui"),
    ]


async def test_an_open_watch_sees_a_write_at_once(api: ApiClient, namespace: str) -> None:
    await create_service(api, namespace, "ui")
    start = await version(api, namespace)
    async with api.watch(services(namespace), {"resourceVersion": start}) as found:
        changed = (await patch_service(api, namespace, "ui", {"spec": {"selector": UI}})).ok()
        event = await anext(found)
    assert (event.type, event.object) == ("MODIFIED", changed)


async def test_entering_and_leaving_a_selection_is_added_and_deleted(api: ApiClient, namespace: str) -> None:
    await create_service(api, namespace, "ui")
    start = await version(api, namespace)
    for value in ("x", "y"):
        (await patch_service(api, namespace, "ui", {"metadata": {"labels": {"app": value}}})).ok()
    params = {**LABELLED, "resourceVersion": start}
    assert await seen(api, namespace, params) == [("ADDED", "ui"), ("DELETED", "ui")]


async def test_a_watch_of_one_name_sees_no_other(api: ApiClient, namespace: str) -> None:
    start = await version(api, namespace)
    for name in ("other", "ui"):
        await create_service(api, namespace, name)
    params = {"fieldSelector": "metadata.name=ui", "resourceVersion": start}
    assert await seen(api, namespace, params) == [("ADDED", "ui"), ("DELETED", "ui")]


async def test_a_watch_ends_when_its_time_is_over(api: ApiClient, namespace: str) -> None:
    await create_service(api, namespace, "ui")
    async with api.watch(services(namespace), {"timeoutSeconds": "1"}) as found:
        assert {event.type async for event in found} <= {"ADDED"}


async def test_a_watch_from_a_version_that_is_no_number_is_refused(api: ApiClient, namespace: str) -> None:
    with pytest.raises(ApiError) as refused:
        async with api.watch(services(namespace), {"resourceVersion": "garbage"}):
            pass
    assert refused.value.response.status == 500


async def test_an_event_is_kept_and_found_by_its_object(api: ApiClient, namespace: str) -> None:
    body = {
        "metadata": {"generateName": "driver-"},
        "involvedObject": {"kind": "Pod", "name": "driver", "namespace": namespace},
        "reason": "SparkUIPublished",
        "message": "port 4040",
        "type": "Normal",
    }
    created = (await api.request("POST", events(namespace), body, params={"fieldValidation": "Strict"})).ok()
    assert created["metadata"]["name"].startswith("driver-")
    params = {"fieldSelector": "involvedObject.name=driver,reason=SparkUIPublished"}
    listed = (await api.request("GET", events(namespace), params=params)).ok()
    assert [item["message"] for item in listed["items"]] == ["port 4040"]


async def test_an_event_about_another_namespace_is_refused(api: ApiClient, namespace: str) -> None:
    body = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "driver"}, "type": "Normal"}
    answer = await api.request("POST", events(namespace), body)
    assert answer.status == 422
    assert 'involvedObject.namespace: Invalid value: "": does not match' in answer.body["message"]


async def test_paths_and_methods_that_are_not_served(api: ApiClient, namespace: str) -> None:
    assert (await api.request("GET", f"/api/v1/namespaces/{namespace}/unheardof")).status == 404
    assert (await api.request("PATCH", services(namespace), {})).status == 405
    assert (await api.request("POST", services(namespace, "ui"), {})).status == 405


async def test_health_and_version(api: ApiClient) -> None:
    assert (await api.request("GET", "/readyz")).text == "ok"
    assert (await api.request("GET", "/version")).ok()["minor"] == "36"


async def test_a_deleted_namespace_takes_everything_with_it(api: ApiClient, namespace: str) -> None:
    await create_service(api, namespace, "ui")
    params = {"fieldSelector": f"metadata.name={namespace}"}
    # the controller of a busy cluster takes its time
    async with api.watch("/api/v1/namespaces", params, within=60) as found:
        deleted = (await api.request("DELETE", f"/api/v1/namespaces/{namespace}")).ok()
        assert deleted["status"]["phase"] == "Terminating"
        types = []
        async for event in found:
            types.append(event.type)
            if event.type == "DELETED":
                break
    assert types[:2] == ["ADDED", "MODIFIED"]
    assert (await api.request("GET", services(namespace, "ui"))).status == 404
