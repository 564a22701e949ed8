"""What is special about each kind of object: how it is filled in, judged, changed and deleted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.standin import pod, service, service_rules
from sandbox.standin.ledger import Key, Ledger
from sandbox.standin.resources import (
    EVENTS,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Object,
    Resource,
)
from sandbox.standin.status import Cause, forbidden


@dataclass(frozen=True)
class Placed:
    """The object that is to be written, where, and what stands there now (None for a new one)."""

    key: Key
    new: Object
    old: Object | None
    ledger: Ledger


@dataclass(frozen=True)
class Kind:
    """The rules of one kind. Each step changes ``placed.new`` in place, or returns what is wrong with it."""

    admit: Callable[[Placed], None]
    complete: Callable[[Placed], None]
    judge: Callable[[Placed], list[Cause]]
    allocate: Callable[[Placed], None]


def of(resource: Resource) -> Kind:
    """Return the rules of a resource; most have none of their own."""
    return _KINDS.get(resource, _PLAIN)


def change_status(new: Object, old: Object) -> Object:
    """Return ``old`` with what a write to its status sub-resource changes: status, labels and annotations."""
    changed = copy.deepcopy(old)
    for key in ("labels", "annotations"):
        changed["metadata"].pop(key, None)
        if key in new["metadata"]:
            changed["metadata"][key] = new["metadata"][key]
    changed["metadata"] |= {
        key: value for key, value in new["metadata"].items() if key in ("uid", "resourceVersion")
    }
    return changed | {"status": new.get("status", {})}


def keep_status(new: Object, old: Object) -> None:
    """Undo what a write to the object itself would change of its status."""
    new.pop("status", None)
    if "status" in old:
        new["status"] = old["status"]


def _nothing(placed: Placed) -> None:
    pass


def _no_fault(placed: Placed) -> list[Cause]:
    return []


def _complete_service(placed: Placed) -> None:
    service.default(placed.new)
    if placed.old is not None:
        service.carry(placed.new, placed.old)
    service.families(placed.new)


def _judge_service(placed: Placed) -> list[Cause]:
    others = service.Allocator.of(_other_services(placed))
    causes = service_rules.validate(placed.new, others.node_ports)
    if placed.old is not None:
        causes += service_rules.validate_update(placed.new, placed.old)
    return causes


def _allocate_service(placed: Placed) -> None:
    allocator = service.Allocator.of(_other_services(placed))
    for held in (placed.new, placed.old):
        if held is not None:
            allocator.node_ports.update(service.node_ports(held["spec"]))
    service.allocate(placed.new, allocator)


def _other_services(placed: Placed) -> list[Object]:
    place = (placed.key.namespace, placed.key.name)
    return [
        other
        for other in placed.ledger.find(SERVICES)
        if (other["metadata"]["namespace"], other["metadata"]["name"]) != place
    ]


def _admit_pod(placed: Placed) -> None:
    account = placed.new.get("spec", {}).get("serviceAccountName") or "default"
    place = placed.key.namespace
    if placed.ledger.get(Key(SERVICE_ACCOUNTS, place, account)) is None:
        detail = f'error looking up service account {place}/{account}: serviceaccount "{account}" not found'
        raise forbidden(PODS, placed.key.name, detail)


def _judge_pod(placed: Placed) -> list[Cause]:
    return pod.validate(placed.new) if placed.old is None else pod.validate_update(placed.new, placed.old)


def _judge_event(placed: Placed) -> list[Cause]:
    about = placed.new.get("involvedObject", {}).get("namespace", "")
    if about == placed.key.namespace:
        return []
    return [Cause.invalid("involvedObject.namespace", about, "does not match event.namespace")]


def _complete_namespace(placed: Placed) -> None:
    labels = placed.new["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = placed.key.name
    placed.new.setdefault("spec", {"finalizers": ["kubernetes"]})
    placed.new.setdefault("status", {"phase": "Active"})


_PLAIN = Kind(_nothing, _nothing, _no_fault, _nothing)
_KINDS = {
    SERVICES: Kind(_nothing, _complete_service, _judge_service, _allocate_service),
    PODS: Kind(_admit_pod, lambda placed: pod.default(placed.new), _judge_pod, _nothing),
    EVENTS: Kind(_nothing, _nothing, _judge_event, _nothing),
    NAMESPACES: Kind(_nothing, _complete_namespace, _no_fault, _nothing),
}
