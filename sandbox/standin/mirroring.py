"""The slices that are mirrored from the Endpoints of a Service without a selector."""

from __future__ import annotations

from sandbox.standin import slice_objects
from sandbox.standin.ledger import Key, Ledger
from sandbox.standin.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES, Object

MANAGER = "endpointslicemirroring-controller.k8s.io"


def reconcile(ledger: Ledger) -> None:
    """Mirror each Service's Endpoints while it has no selector; remove what was mirrored once it has one."""
    for service in ledger.find(SERVICES):
        _mirror(ledger, service)


def _mirror(ledger: Ledger, service: Object) -> None:
    place = service["metadata"]
    source = ledger.get(Key(ENDPOINTS, place["namespace"], place["name"]))
    left = slice_objects.of_service(ledger, service, MANAGER)
    if source is not None and not service["spec"].get("selector"):
        labels = {
            **source["metadata"].get("labels", {}),
            slice_objects.SERVICE_LABEL: place["name"],
            slice_objects.MANAGER_LABEL: MANAGER,
        }
        for subset in source.get("subsets", []):
            item = left.pop(0) if left else slice_objects.new(ledger, service, source)
            slice_objects.write(ledger, item, _content(subset), labels)
    for item in left:
        ledger.remove(Key(ENDPOINT_SLICES, place["namespace"], item["metadata"]["name"]))


def _content(subset: Object) -> Object:
    endpoints = [
        {
            "addresses": [address["ip"]],
            "conditions": {"ready": ready},
            **{key: address[key] for key in ("targetRef", "nodeName") if key in address},
        }
        for group, ready in (("addresses", True), ("notReadyAddresses", False))
        for address in subset.get(group, [])
    ]
    return {"endpoints": endpoints, "ports": [{"name": "", **port} for port in subset.get("ports", [])]}
