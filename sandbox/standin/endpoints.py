"""Which Pods serve a Service, at which ports, and in what condition: the reckoning, with nothing stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sandbox.standin.pod import TERMINAL
from sandbox.standin.resources import Object


@dataclass(frozen=True)
class Group:
    """Endpoints that share their ports, in the form of an EndpointSlice; an empty slice has null for both."""

    ports: list[Object] | None
    endpoints: list[Object] | None


def by_ports(service: Object, pods: Iterable[Object]) -> list[Group]:
    """Return the endpoints of a Service by the ports that they have.

    A Pod counts when it has an address and has not ended. ``ready`` is false for one that is being deleted, and
    true for every other one under publishNotReadyAddresses.
    """
    anyway = bool(service["spec"].get("publishNotReadyAddresses"))
    groups: list[Group] = []
    for pod in _with_address(pods):
        ports = _ports(service, pod) or None
        serving = is_ready(pod)
        terminating = "deletionTimestamp" in pod["metadata"]
        endpoint: Object = {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {
                "ready": anyway or (serving and not terminating),
                "serving": serving,
                "terminating": terminating,
            },
            "targetRef": _reference(pod),
        }
        if pod["spec"].get("nodeName"):
            endpoint["nodeName"] = pod["spec"]["nodeName"]
        group = next((group for group in groups if group.ports == ports), None)
        if group is None:
            groups.append(Group(ports, [endpoint]))
        elif group.endpoints is not None:
            group.endpoints.append(endpoint)
    return groups


def subsets(service: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the same as the subsets of an Endpoints object, where Pods that are being deleted do not count."""
    anyway = bool(service["spec"].get("publishNotReadyAddresses"))
    found: list[Object] = []
    for pod in _with_address(pods):
        ports = [_without_empty_name(port) for port in _ports(service, pod)]
        if not ports or ("deletionTimestamp" in pod["metadata"] and not anyway):
            continue
        subset = next((subset for subset in found if subset["ports"] == ports), None)
        if subset is None:
            subset = {"ports": ports}
            found.append(subset)
        address = {"ip": pod["status"]["podIP"], "targetRef": _reference(pod)}
        if pod["spec"].get("nodeName"):
            address["nodeName"] = pod["spec"]["nodeName"]
        subset.setdefault("addresses" if anyway or is_ready(pod) else "notReadyAddresses", []).append(address)
    return found


def is_ready(pod: Object) -> bool:
    """Return whether the Pod's condition Ready is True."""
    conditions: list[Object] = pod["status"].get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def _with_address(pods: Iterable[Object]) -> Iterator[Object]:
    for pod in pods:
        if pod["status"].get("podIP") and pod["status"].get("phase") not in TERMINAL:
            yield pod


def _ports(service: Object, pod: Object) -> list[Object]:
    found = []
    for port in service["spec"].get("ports", []):
        number = _number(pod, port)
        if number is not None:
            entry = {"name": port.get("name", ""), "protocol": port["protocol"], "port": number}
            found.append(entry | ({"appProtocol": port["appProtocol"]} if "appProtocol" in port else {}))
    return found


def _number(pod: Object, port: Object) -> int | None:
    """Return the port at which a Pod serves: the number itself, or that of the container port of that name."""
    target: int | str = port["targetPort"]
    if isinstance(target, int):
        return target
    for container in pod["spec"].get("containers", []):
        for declared in container.get("ports", []):
            if declared.get("name") == target and declared["protocol"] == port["protocol"]:
                number: int = declared["containerPort"]
                return number
    return None


def _without_empty_name(port: Object) -> Object:
    return {key: value for key, value in port.items() if key != "name" or value}


def _reference(pod: Object) -> Object:
    place = pod["metadata"]
    return {"kind": "Pod", "namespace": place["namespace"], "name": place["name"], "uid": place["uid"]}
