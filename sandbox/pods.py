"""Namespaces, Nodes and Pods through the API alone: what a kubelet would report is written here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sandbox.apiclient import ApiClient, Object
from sandbox.waiting import wait_until

NODE = "node1"
DRIVER_CONTAINER = "spark-kubernetes-driver"
STARTED = "2026-01-01T00:00:00Z"


def pods(namespace: str, name: str = "") -> str:
    """Return the API path of the Pods of ``namespace``, or of one of them."""
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


async def create_namespace(api: ApiClient, name: str) -> Object:
    """Create a namespace and wait for its default ServiceAccount, without which no Pod is admitted."""
    created = (await api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})).ok()
    await wait_until(
        api,
        f"/api/v1/namespaces/{name}/serviceaccounts",
        bool,
        params={"fieldSelector": "metadata.name=default"},
    )
    return created


async def create_node(api: ApiClient, name: str = NODE) -> Object:
    """Create a Ready Node. The slice controller leaves out Pods whose Node does not exist."""
    node = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
    (await api.request("POST", "/api/v1/nodes", node)).ok()
    status = {
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Given", "message": ""}]}
    }
    return (await api.request("PATCH", f"/api/v1/nodes/{name}/status", status)).ok()


async def create_pod(
    api: ApiClient,
    namespace: str,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    ip: str = "10.1.0.1",
    host_ip: str = "192.0.2.1",
    phase: str = "Running",
    ready: bool = True,
    node: str = NODE,
    containers: Sequence[str] = (DRIVER_CONTAINER,),
    service_account: str = "default",
    metadata: Mapping[str, object] | None = None,
    spec: Mapping[str, object] | None = None,
) -> Object:
    """Create a Pod on ``node`` with the status that a kubelet would give: IPs, phase, conditions.

    ``metadata`` and ``spec`` are laid over what is built here (key by key, not merged deeper).
    """
    pod = {
        "metadata": {"name": name, "labels": dict(labels or {}), **(metadata or {})},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "serviceAccountName": service_account,
            "containers": [{"name": container, "image": "none"} for container in containers],
            **(spec or {}),
        },
    }
    (await api.request("POST", pods(namespace), pod)).ok()
    return await set_pod_status(api, namespace, name, phase=phase, ready=ready, ip=ip, host_ip=host_ip)


async def set_pod_status(
    api: ApiClient,
    namespace: str,
    name: str,
    *,
    phase: str | None = None,
    ready: bool | None = None,
    ip: str | None = None,
    host_ip: str | None = None,
    terminated: Mapping[str, int] | None = None,
) -> Object:
    """Change a Pod's status as its kubelet would; what is None stays as it is.

    ``terminated`` maps names of containers to the exit codes with which they have ended; every other
    container keeps its state, at first running (or waiting while the phase is Pending).
    """
    pod = (await api.request("GET", pods(namespace, name))).ok()
    status: Object = {}
    if ip is not None:
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    if host_ip is not None:
        status |= {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}]}
    if phase is not None:
        status |= {"phase": phase, "startTime": STARTED}
    if ready is not None:
        answer = "True" if ready else "False"
        kinds = {"PodScheduled": "True", "Initialized": "True", "ContainersReady": answer, "Ready": answer}
        status["conditions"] = [
            {"type": kind, "status": state, "lastTransitionTime": STARTED} for kind, state in kinds.items()
        ]
    known = {entry["name"]: entry for entry in pod["status"].get("containerStatuses", [])}
    now = phase or pod["status"].get("phase", "Pending")
    status["containerStatuses"] = [
        _container_status(container["name"], known, now, terminated=terminated or {}, ready=ready)
        for container in pod["spec"]["containers"]
    ]
    return (await api.request("PATCH", pods(namespace, name) + "/status", {"status": status})).ok()


def _container_status(
    name: str, known: Mapping[str, Object], phase: str, *, terminated: Mapping[str, int], ready: bool | None
) -> Object:
    before = known.get(name, {})
    if name in terminated:
        times = {"startedAt": STARTED, "finishedAt": STARTED}
        state: Object = {"terminated": {"exitCode": terminated[name], "reason": "Ended", **times}}
    elif "state" in before and "waiting" not in before["state"]:
        state = before["state"]
    elif phase == "Pending":
        state = {"waiting": {"reason": "ContainerCreating"}}
    else:
        state = {"running": {"startedAt": STARTED}}
    is_ready = "running" in state and (bool(before.get("ready")) if ready is None else ready)
    return {
        "name": name,
        "image": "none",
        "imageID": "",
        "restartCount": 0,
        "ready": is_ready,
        "state": state,
    }


async def delete_pod(api: ApiClient, namespace: str, name: str, *, grace: int = 0) -> Object:
    """Delete a Pod: at once with ``grace`` 0, else it stays Terminating, as no kubelet ends it."""
    return (
        await api.request("DELETE", pods(namespace, name), params={"gracePeriodSeconds": str(grace)})
    ).ok()
