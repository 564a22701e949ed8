"""Garbage collection, and the end of namespaces, as kube-controller-manager does them."""

from __future__ import annotations

from sandbox.standin.ledger import Key, Ledger
from sandbox.standin.resources import BY_KIND, NAMESPACES, Object


def collect(ledger: Ledger) -> None:
    """Delete what has lost every owner, and empty and delete the namespaces that end.

    An owner counts only with the very uid, name, kind and namespace. Of several owners the missing ones are
    struck off. A kind that nobody serves can't be looked up: its dependants stay.
    """
    for key, value in ledger.everything():
        owners: list[Object] = value["metadata"].get("ownerReferences", [])
        present = [owner for owner in owners if _exists(ledger, key.namespace, owner)]
        if owners and not present:
            ledger.remove(key)
        elif len(present) < len(owners):
            value["metadata"]["ownerReferences"] = present
            ledger.put(key, value)
    for namespace in ledger.find(NAMESPACES):
        if "deletionTimestamp" in namespace["metadata"]:
            _end(ledger, namespace["metadata"]["name"])


def _exists(ledger: Ledger, namespace: str, owner: Object) -> bool:
    resource = BY_KIND.get((owner["apiVersion"], owner["kind"]))
    if resource is None:
        return True
    found = ledger.get(Key(resource, namespace if resource.namespaced else "", owner["name"]))
    return found is not None and found["metadata"]["uid"] == owner["uid"]


def _end(ledger: Ledger, namespace: str) -> None:
    for key, _ in ledger.everything():
        if key.namespace == namespace:
            ledger.remove(key)
    ledger.remove(Key(NAMESPACES, "", namespace))
