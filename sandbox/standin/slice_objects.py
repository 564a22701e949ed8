"""EndpointSlice objects: finding, framing and writing them, for both of their controllers."""

from __future__ import annotations

from sandbox.standin.ledger import Key, Ledger
from sandbox.standin.resources import ENDPOINT_SLICES, Object

SERVICE_LABEL = "kubernetes.io/service-name"
MANAGER_LABEL = "endpointslice.kubernetes.io/managed-by"


def of_service(ledger: Ledger, service: Object, manager: str) -> list[Object]:
    """Return the slices of a Service that one controller manages, by name."""
    name = service["metadata"]["name"]
    return [
        item
        for item in ledger.find(ENDPOINT_SLICES, service["metadata"]["namespace"])
        if item["metadata"].get("labels", {}).get(SERVICE_LABEL) == name
        and item["metadata"]["labels"].get(MANAGER_LABEL) == manager
    ]


def new(ledger: Ledger, service: Object, owner: Object) -> Object:
    """Return the frame of a slice that ``owner`` (the Service, or its Endpoints) will own."""
    name = service["metadata"]["name"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return {
        "kind": ENDPOINT_SLICES.kind,
        "apiVersion": ENDPOINT_SLICES.api_version,
        "metadata": {
            "name": ledger.new_name(f"{name}-"),
            "generateName": f"{name}-",
            "namespace": service["metadata"]["namespace"],
            "uid": ledger.new_uid(),
            "creationTimestamp": service["metadata"]["creationTimestamp"],
            "ownerReferences": [
                reference | {"uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
            ],
        },
        "addressType": "IPv4",
    }


def write(ledger: Ledger, item: Object, content: Object, labels: Object) -> None:
    """Write a slice if its content or labels differ from what stands there."""
    key = Key(ENDPOINT_SLICES, item["metadata"]["namespace"], item["metadata"]["name"])
    updated = item | content | {"metadata": item["metadata"] | {"labels": labels}}
    if ledger.get(key) != updated:
        ledger.put(key, updated)
