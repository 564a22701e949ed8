"""Merge-patches of Services: what merges, what is replaced, what is carried over, and what a version does."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.apiclient import STRATEGIC_MERGE_PATCH, ApiClient, Object
from sandbox.objects import create_service, services
from tests.contract.objects import UI, get_service, patch_service, service_body


@pytest.fixture
async def service(api: ApiClient, namespace: str) -> Object:
    """A Service called ``ui`` with one port."""
    return await create_service(api, namespace, "ui", selector=UI, port_name="spark-ui")


@pytest.fixture
async def node_ports(api: ApiClient, namespace: str) -> dict[str, int]:
    """The node ports, by name, of a Service called ``ui`` that has two."""
    ports = [{"name": "spark-ui", "port": 4040}, {"name": "metrics", "port": 9090}]
    created = await create_service(api, namespace, "ui", spec={"type": "NodePort", "ports": ports})
    return ports_by_name(created)


def ports_by_name(service: Object) -> dict[str, int]:
    return {port["name"]: port["nodePort"] for port in service["spec"]["ports"]}


@pytest.mark.usefixtures("service")
async def test_foreign_selector_keys_survive_unless_nulled(api: ApiClient, namespace: str) -> None:
    added = await patch_service(api, namespace, "ui", {"spec": {"selector": {"app": "x"}}})
    assert added.ok()["spec"]["selector"] == {**UI, "app": "x"}
    nulled = await patch_service(api, namespace, "ui", {"spec": {"selector": {"spark-role": None}}})
    assert nulled.ok()["spec"]["selector"] == {"app": "x"}


async def test_a_ports_list_replaces_the_whole_list(
    api: ApiClient, namespace: str, node_ports: dict[str, int]
) -> None:
    one = [{"name": "spark-ui", "port": 4040, "targetPort": 4041}]
    answer = await patch_service(api, namespace, "ui", {"spec": {"ports": one}})
    assert ports_by_name(answer.ok()) == {"spark-ui": node_ports["spark-ui"]}


async def test_strategic_merge_merges_ports_by_their_number(
    api: ApiClient, namespace: str, node_ports: dict[str, int]
) -> None:
    one = {"spec": {"ports": [{"port": 4040, "targetPort": 4041}]}}
    answer = await api.request("PATCH", services(namespace, "ui"), one, content_type=STRATEGIC_MERGE_PATCH)
    changed = answer.ok()
    assert ports_by_name(changed) == node_ports
    assert [port["targetPort"] for port in changed["spec"]["ports"]] == [4041, 9090]


@pytest.mark.parametrize("sent", [{}, {"nodePort": 0}, {"nodePort": None}], ids=["omitted", "0", "null"])
async def test_a_node_port_is_carried_over_by_name(
    api: ApiClient, namespace: str, node_ports: dict[str, int], sent: Object
) -> None:
    ports = [
        {"name": "metrics", "port": 9090, **sent},
        {"name": "spark-ui", "port": 80, "targetPort": 4041, **sent},
    ]
    answer = await patch_service(api, namespace, "ui", {"spec": {"ports": ports}})
    assert ports_by_name(answer.ok()) == node_ports


async def test_a_port_of_another_name_gets_another_node_port(
    api: ApiClient, namespace: str, node_ports: dict[str, int]
) -> None:
    ports = [{"name": "renamed", "port": 4040}, {"name": "metrics", "port": 9090}]
    answer = await patch_service(api, namespace, "ui", {"spec": {"ports": ports}})
    found = ports_by_name(answer.ok())
    assert found["metrics"] == node_ports["metrics"]
    assert found["renamed"] not in node_ports.values()


async def test_an_unnamed_port_keeps_its_node_port(api: ApiClient, namespace: str) -> None:
    body = service_body()
    body["spec"]["type"] = "NodePort"
    created = (await api.request("POST", services(namespace), body)).ok()
    answer = await patch_service(
        api, namespace, "ui", {"spec": {"ports": [{"port": 4040, "targetPort": 4041}]}}
    )
    assert answer.ok()["spec"]["ports"][0]["nodePort"] == created["spec"]["ports"][0]["nodePort"]


async def test_health_check_port_and_cluster_ip_are_kept(api: ApiClient, namespace: str) -> None:
    spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
    created = await create_service(api, namespace, "ui", spec=spec)
    sent = {"healthCheckNodePort": None, "clusterIP": None, "clusterIPs": None}
    changed = (await patch_service(api, namespace, "ui", {"spec": sent})).ok()
    for key in sent:
        assert changed["spec"][key] == created["spec"][key]


async def test_a_service_without_node_ports_loses_them(
    api: ApiClient, namespace: str, node_ports: dict[str, int]
) -> None:
    answer = await patch_service(api, namespace, "ui", {"spec": {"type": "ClusterIP"}})
    assert node_ports
    assert all("nodePort" not in port for port in answer.ok()["spec"]["ports"])


async def test_a_stale_version_is_a_conflict(api: ApiClient, namespace: str, service: Object) -> None:
    version = service["metadata"]["resourceVersion"]
    fresh = {"metadata": {"resourceVersion": version, "labels": {"a": "1"}}}
    assert (await patch_service(api, namespace, "ui", fresh)).status == 200
    stale = await patch_service(api, namespace, "ui", fresh)
    assert (stale.status, stale.body["reason"]) == (409, "Conflict")
    assert stale.body["details"] == {"name": "ui", "kind": "services"}
    assert stale.body["message"] == (
        'Operation cannot be fulfilled on services "ui": the object has been modified; please apply your changes '
        "to the latest version and try again"
    )


@pytest.mark.usefixtures("service")
async def test_a_version_that_is_no_number_is_an_internal_error(api: ApiClient, namespace: str) -> None:
    answer = await patch_service(api, namespace, "ui", {"metadata": {"resourceVersion": "garbage"}})
    assert answer.status == 500


@pytest.mark.usefixtures("service")
async def test_version_0_passes(api: ApiClient, namespace: str) -> None:
    body = {"metadata": {"resourceVersion": "0", "labels": {"a": "1"}}}
    assert (await patch_service(api, namespace, "ui", body)).ok()["metadata"]["labels"] == {"a": "1"}


@pytest.mark.usefixtures("service")
async def test_patches_without_a_version_never_conflict(api: ApiClient, namespace: str) -> None:
    answers = await asyncio.gather(
        *(
            patch_service(api, namespace, "ui", {"metadata": {"annotations": {f"n{number}": "x"}}})
            for number in range(40)
        )
    )
    assert {answer.status for answer in answers} == {200}
    found = (await get_service(api, namespace))["metadata"]["annotations"]
    assert len(found) == 40


async def test_a_patch_that_changes_nothing_keeps_the_version(
    api: ApiClient, namespace: str, service: Object
) -> None:
    same = {"spec": {"selector": UI, "ports": [{"name": "spark-ui", "port": 4040}]}}
    answer = await patch_service(api, namespace, "ui", same)
    assert answer.ok()["metadata"]["resourceVersion"] == service["metadata"]["resourceVersion"]


async def test_the_uid_of_another_object_is_refused(api: ApiClient, namespace: str, service: Object) -> None:
    own = {"metadata": {"uid": service["metadata"]["uid"], "labels": {"a": "1"}}}
    assert (await patch_service(api, namespace, "ui", own)).status == 200
    other = await patch_service(api, namespace, "ui", {"metadata": {"uid": "another"}})
    assert (other.status, other.body["reason"]) == (422, "Invalid")
    assert other.body["message"] == (
        'Service "ui" is invalid: metadata.uid: Invalid value: "another": field is immutable'
    )


async def test_a_stale_version_is_told_before_another_uid(
    api: ApiClient, namespace: str, service: Object
) -> None:
    version = service["metadata"]["resourceVersion"]
    await patch_service(api, namespace, "ui", {"metadata": {"labels": {"a": "1"}}})
    both = {"metadata": {"uid": "another", "resourceVersion": version}}
    assert (await patch_service(api, namespace, "ui", both)).status == 409


async def test_a_dry_run_answers_but_writes_nothing(api: ApiClient, namespace: str, service: Object) -> None:
    labels = {"metadata": {"labels": {"a": "1"}}}
    tried = await patch_service(api, namespace, "ui", labels, dryRun="All")
    assert tried.ok()["metadata"]["labels"] == {"a": "1"}
    refused = await patch_service(api, namespace, "ui", {"spec": {"ports": [{"port": 0}]}}, dryRun="All")
    assert refused.status == 422
    assert await get_service(api, namespace) == service
    created = await api.request("POST", services(namespace), service_body("b"), params={"dryRun": "All"})
    assert created.status == 201
    assert (await api.request("GET", services(namespace, "b"))).status == 404


@pytest.mark.usefixtures("service")
async def test_an_update_replaces_the_whole_and_keeps_what_the_server_gave(
    api: ApiClient, namespace: str
) -> None:
    before = await get_service(api, namespace)
    answer = await api.request("PUT", services(namespace, "ui"), service_body())
    after = answer.ok()
    assert "selector" not in after["spec"]
    for path in (("metadata", "uid"), ("metadata", "creationTimestamp"), ("spec", "clusterIP")):
        assert after[path[0]][path[1]] == before[path[0]][path[1]]
