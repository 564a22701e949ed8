"""What several contract tests need on top of the sandbox's own helpers."""

from __future__ import annotations

import uuid

from sandbox.apiclient import ApiClient, ApiResponse, Object
from sandbox.objects import create_pod, create_service, endpoint_slices, of_service, services, wait_until

UI = {"spark-role": "driver"}
PARKED = {"spark-ui-agent/parked": "0"}
UI_ROUTE = {("10.1.0.1", 4040)}


async def patch_service(
    api: ApiClient, namespace: str, name: str, body: object, **options: str
) -> ApiResponse:
    """Send one merge-patch to a Service; ``options`` are query parameters."""
    return await api.request("PATCH", services(namespace, name), body, params=options)


async def get_service(api: ApiClient, namespace: str, name: str = "ui") -> Object:
    """Return a Service as it stands."""
    return (await api.request("GET", services(namespace, name))).ok()


def service_body(name: str = "ui", **metadata: object) -> Object:
    """Return the least that a Service needs."""
    return {"metadata": {"name": name, **metadata}, "spec": {"ports": [{"port": 4040}]}}


def owner(pod: Object, **changed: object) -> Object:
    """Return an ownerReference to a Pod, with some of it changed."""
    metadata = pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], **changed}


async def controllers_caught_up(api: ApiClient, namespace: str) -> None:
    """Return when the endpoint controllers have worked through what was written so far.

    There is nothing to wait for where a controller rightly does nothing. So a Service of another name is made to
    route, which comes after in the controllers' queue.
    """
    name = f"tracer-{uuid.uuid4().hex[:8]}"
    await create_pod(api, namespace, name, labels={"tracer": name}, ip="10.1.9.9")
    await create_service(api, namespace, name, selector={"tracer": name})
    await wait_until(
        api,
        endpoint_slices(namespace),
        lambda found: any(item.get("endpoints") for item in found),
        params=of_service(name),
    )


async def garbage_collected(api: ApiClient, namespace: str) -> None:
    """Return when the garbage collector has worked through what was written so far: later garbage is gone."""
    name = f"garbage-{uuid.uuid4().hex[:8]}"
    lost = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "nobody",
        "uid": "00000000-0000-0000-0000-000000000000",
    }
    (await api.request("POST", services(namespace), service_body(name, ownerReferences=[lost]))).ok()
    await service_gone(api, namespace, name)


async def service_gone(api: ApiClient, namespace: str, name: str) -> None:
    """Return when there is no Service of this name."""
    await wait_until(
        api,
        services(namespace),
        lambda found: not found,
        params={"fieldSelector": f"metadata.name={name}"},
    )
