"""The sandbox's control plane as tests use it: what it serves, and that its controllers work."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sandbox.apiclient import ApiError
from sandbox.binaries import kubernetes_version
from sandbox.control_plane import ControlPlane
from sandbox.objects import (
    NODE,
    Rule,
    create_namespace,
    create_pod,
    create_service,
    delete_pod,
    get_slices,
    routes,
    service_account_with_role,
    services,
    set_pod_status,
    wait_for_routes,
    wait_until,
)

LABELS = {"spark-role": "driver", "spark-app-selector": "spark-1"}
ADDRESS = "10.1.0.7"
CONTAINER = "spark-kubernetes-driver"


async def test_serves_the_version_that_is_built(control_plane: ControlPlane) -> None:
    version = (await control_plane.admin.request("GET", "/version")).ok()

    assert version["gitVersion"] == kubernetes_version()


async def test_has_a_node_and_the_service_of_the_api(control_plane: ControlPlane) -> None:
    nodes = (await control_plane.admin.request("GET", "/api/v1/nodes")).ok()["items"]
    kubernetes = (await control_plane.admin.request("GET", services("default", "kubernetes"))).ok()

    assert [node["metadata"]["name"] for node in nodes] == [NODE]
    assert kubernetes["spec"]["clusterIP"] == "10.96.0.1"


def test_kubeconfig_serves_kubectl(control_plane: ControlPlane) -> None:
    command: list[str | Path] = [control_plane.kubectl, "get", "nodes", "-o", "name"]
    environment = {
        "KUBECONFIG": str(control_plane.admin_kubeconfig),
        "HOME": str(control_plane.layout.folder),
    }

    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=True)

    assert answer.stdout.split() == [f"node/{NODE}"]


async def test_slice_of_a_service_fills_and_empties(control_plane: ControlPlane) -> None:
    api, namespace = control_plane.admin, "slices"
    await create_namespace(api, namespace)
    await create_service(api, namespace, "ui", selector=LABELS, target_port=43210)
    await create_pod(api, namespace, "driver", labels=LABELS, ip=ADDRESS)

    filled = await wait_for_routes(api, namespace, "ui", {(ADDRESS, 43210)})
    ended = await set_pod_status(
        api, namespace, "driver", phase="Failed", ready=False, terminated={CONTAINER: 1}
    )
    await wait_for_routes(api, namespace, "ui", set())

    assert [entry["endpoints"][0]["targetRef"]["name"] for entry in filled] == ["driver"]
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1
    assert routes(await get_slices(api, namespace, "ui")) == set()


async def test_service_of_a_deleted_owner_is_collected(control_plane: ControlPlane) -> None:
    api, namespace = control_plane.admin, "owners"
    await create_namespace(api, namespace)
    pod = await create_pod(api, namespace, "driver", labels=LABELS)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "driver", "uid": pod["metadata"]["uid"]}
    made = await create_service(api, namespace, "ui", metadata={"ownerReferences": [owner]})

    since = {"fieldSelector": "metadata.name=ui", "resourceVersion": made["metadata"]["resourceVersion"]}
    async with api.watch(services(namespace), since) as events:
        await delete_pod(api, namespace, "driver")
        event = await anext(events)

    assert event.type == "DELETED"


async def test_token_of_a_service_account_has_its_role_and_no_more(control_plane: ControlPlane) -> None:
    api, namespace = control_plane.admin, "rights"
    await create_namespace(api, namespace)
    await create_service(api, namespace, "ui")
    rule = Rule(["services"], ["get"], names=["ui"])
    token = await service_account_with_role(api, namespace, "agent", [rule])
    agent = control_plane.client(token)

    read = await agent.request("GET", services(namespace, "ui"))
    deleted = await agent.request("DELETE", services(namespace, "ui"))
    other = await api.request("GET", services(namespace, "other"), token=token)
    with pytest.raises(ApiError) as refused:
        async with agent.watch(services(namespace)):
            pass

    assert read.status == 200
    assert (deleted.status, deleted.body["reason"]) == (403, "Forbidden")
    assert other.status == 403
    assert refused.value.response.status == 403


async def test_wait_that_is_not_fulfilled_tells_what_was_there(control_plane: ControlPlane) -> None:
    with pytest.raises(TimeoutError, match=r"/services not as wanted .*10\.96\.0\.1"):
        await wait_until(control_plane.admin, services("default"), lambda _: False, within=0.2)


async def test_bytes_are_sent_as_they_are_and_a_refusal_is_an_error(control_plane: ControlPlane) -> None:
    answer = await control_plane.admin.request(
        "POST", services("default"), b"{", content_type="application/json"
    )

    assert answer.status == 400
    with pytest.raises(ApiError, match="API answered 400: "):
        answer.ok()


async def test_kept_connections_serve_requests_and_watches_at_once(control_plane: ControlPlane) -> None:
    async with control_plane.client() as api:
        await create_namespace(api, "kept")
        async with api.watch(services("kept")) as events:
            await create_service(api, "kept", "ui")
            event = await anext(events)

    assert (event.type, event.object["metadata"]["name"]) == ("ADDED", "ui")
