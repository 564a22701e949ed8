"""EndpointSlices and Endpoints, as the controllers of Kubernetes 1.36 make them.

The rule that matters most: **a Service without a selector (or of type ExternalName) is left alone.** What its
selector had once selected stays in its slices, stale, and is mirrored from its Endpoints into one slice more.
"""

from __future__ import annotations

from sandbox.standin import endpoints, slice_objects
from sandbox.standin.ledger import Key, Ledger
from sandbox.standin.resources import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES, Object
from sandbox.standin.selection import matches_labels

MANAGER = "endpointslice-controller.k8s.io"
HEADLESS_LABEL = "service.kubernetes.io/headless"


def reconcile(ledger: Ledger) -> None:
    """Bring the slices and Endpoints of every Service up to date."""
    for service in ledger.find(SERVICES):
        if service["spec"].get("selector") and service["spec"]["type"] != "ExternalName":
            pods = _selected(ledger, service)
            _write_slices(ledger, service, endpoints.by_ports(service, pods))
            _write_endpoints(ledger, service, endpoints.subsets(service, pods))
    for left in ledger.find(ENDPOINTS):
        place, name = left["metadata"]["namespace"], left["metadata"]["name"]
        if ledger.get(Key(SERVICES, place, name)) is None:
            ledger.remove(Key(ENDPOINTS, place, name))


def _selected(ledger: Ledger, service: Object) -> list[Object]:
    nodes = {node["metadata"]["name"] for node in ledger.find(NODES)}
    return [
        pod
        for pod in ledger.find(PODS, service["metadata"]["namespace"])
        if matches_labels(service["spec"]["selector"], pod["metadata"].get("labels", {}))
        # the controller skips a Pod whose Node it does not know
        and (not pod["spec"].get("nodeName") or pod["spec"]["nodeName"] in nodes)
    ]


def _write_slices(ledger: Ledger, service: Object, groups: list[endpoints.Group]) -> None:
    """Write one slice per set of ports, or one empty slice; slices are re-used before new ones are made."""
    left = slice_objects.of_service(ledger, service, MANAGER)
    labels = {
        **service["metadata"].get("labels", {}),
        slice_objects.SERVICE_LABEL: service["metadata"]["name"],
    }
    labels[slice_objects.MANAGER_LABEL] = MANAGER
    if service["spec"].get("clusterIP") == "None":
        labels[HEADLESS_LABEL] = ""
    pairs: list[tuple[Object | None, Object]] = []
    waiting = []
    for group in groups or [endpoints.Group(None, None)]:
        content = {"endpoints": group.endpoints, "ports": group.ports}
        same = next((item for item in left if item["ports"] == group.ports), None)
        if same is None:
            waiting.append(content)
        else:
            left.remove(same)
            pairs.append((same, content))
    pairs += [(left.pop(0) if left else None, content) for content in waiting]
    for item, content in pairs:
        slice_objects.write(ledger, item or slice_objects.new(ledger, service, service), content, labels)
    for item in left:
        ledger.remove(Key(ENDPOINT_SLICES, item["metadata"]["namespace"], item["metadata"]["name"]))


def _write_endpoints(ledger: Ledger, service: Object, subsets: list[Object]) -> None:
    place = service["metadata"]
    key = Key(ENDPOINTS, place["namespace"], place["name"])
    former = ledger.get(key)
    labels = {**place.get("labels", {}), "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    head = (
        former["metadata"]
        if former
        else {
            "name": place["name"],
            "namespace": place["namespace"],
            "uid": ledger.new_uid(),
            "creationTimestamp": place["creationTimestamp"],
        }
    )
    updated: Object = {"kind": "Endpoints", "apiVersion": "v1", "metadata": {**head, "labels": labels}}
    if subsets:
        updated["subsets"] = subsets
    if updated != former:
        ledger.put(key, updated)
