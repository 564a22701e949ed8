"""The stand-in's state and its rules: what kube-apiserver does to an object between request and etcd.

Pure: no socket, no thread, no clock but the one that is handed in. What the controllers of a cluster do later
(endpoints, garbage, namespaces) waits for `Store.settle`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sandbox.standin import collector, kinds, metadata, mirroring, pod, preconditions, slices
from sandbox.standin.ledger import Key, Ledger
from sandbox.standin.preconditions import DeleteOptions
from sandbox.standin.resources import (
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    Object,
    Resource,
)
from sandbox.standin.selection import Selection
from sandbox.standin.status import (
    already_exists,
    bad_request,
    forbidden,
    internal,
    invalid,
    not_found,
)

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Store:
    """The objects of one cluster.

    Every method that refuses raises `StatusError` with the status and words of kube-apiserver 1.36. ``now`` gives
    the time for timestamps (by default a clock that a write moves on by one second); ``seed`` fixes uids and
    generated names.
    """

    def __init__(self, *, now: Callable[[], datetime] | None = None, seed: int = 0) -> None:
        self.ledger = Ledger(seed=seed)
        self._now = now or (lambda: EPOCH + timedelta(seconds=self.ledger.revision))
        for name in ("default", "kube-system"):
            self.create(NAMESPACES, "", {"metadata": {"name": name}})

    @property
    def now(self) -> datetime:
        """The time that the next timestamp will tell."""
        return self._now()

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return one object; 404."""
        found = self.ledger.get(Key(resource, namespace, name))
        if found is None:
            raise not_found(resource, name)
        return found

    def list(
        self, resource: Resource, namespace: str | None, selection: Selection | None = None
    ) -> list[Object]:
        """Return the selected objects of a namespace, of all when that is None."""
        chosen = selection or Selection()
        return [item for item in self.ledger.find(resource, namespace) if chosen.matches(item)]

    def create(self, resource: Resource, namespace: str, value: Object, *, dry_run: bool = False) -> Object:
        """Create an object; 400, 403 (namespace ends, ServiceAccount missing), 404 (no namespace), 409, 422, 500."""
        sent = value["metadata"]
        if sent.get("resourceVersion"):
            raise internal("resourceVersion should not be set on objects to be created")
        if sent.get("namespace", namespace) != namespace:
            raise bad_request(preconditions.OTHER_NAMESPACE)
        name = sent.get("name") or (
            self.ledger.new_name(sent["generateName"]) if sent.get("generateName") else ""
        )
        self._check_namespace(resource, namespace, name)
        key = Key(resource, namespace, name)
        body = metadata.begin(
            sent, namespace=namespace, name=name, uid=self.ledger.new_uid(), created=self.now
        )
        new = {"kind": resource.kind, "apiVersion": resource.api_version, **value, "metadata": body}
        placed = kinds.Placed(key, new, None, self.ledger)
        kind = kinds.of(resource)
        kind.admit(placed)
        kind.complete(placed)
        self._judge(placed)
        if self.ledger.get(key) is not None:
            raise already_exists(resource, name)
        kind.allocate(placed)
        if dry_run:
            return new
        stored = self.ledger.put(key, new)
        if resource == NAMESPACES:
            self.create(SERVICE_ACCOUNTS, name, {"metadata": {"name": "default"}})
        return stored

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Replace an object by ``change`` of it; 400, 404, 409 (stale version), 422, 500 (version no number).

        A change that changes nothing writes nothing and keeps the resourceVersion.
        """
        old = self.get(resource, namespace, name)
        new = change(old)
        preconditions.check_place(new["metadata"], namespace, name)
        preconditions.check_version(resource, name, new["metadata"], old["metadata"])
        metadata.carry(new["metadata"], old["metadata"])
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if subresource == "status":
            new = kinds.change_status(new, old)
        elif "status" in resource.subresources:
            kinds.keep_status(new, old)
        placed = kinds.Placed(Key(resource, namespace, name), new, old, self.ledger)
        kinds.of(resource).complete(placed)
        self._judge(placed)
        kinds.of(resource).allocate(placed)
        if new == old or dry_run:
            return new
        if "deletionTimestamp" in old["metadata"] and not _is_held(resource, new):
            return self.ledger.remove(placed.key, new)
        return self.ledger.put(placed.key, new)

    def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> Object:
        """Delete an object, or mark it as ending where something holds it; 404, 409 (a precondition fails)."""
        old = self.get(resource, namespace, name)
        options = options or DeleteOptions()
        preconditions.check_delete(resource, name, old["metadata"], options)
        if options.dry_run:
            return old
        seconds = pod.grace(old, options.grace) if resource == PODS else 0
        if resource == NAMESPACES:
            old["status"] = {"phase": "Terminating"}
        elif not seconds and not old["metadata"].get("finalizers"):
            return self.ledger.remove(Key(resource, namespace, name))
        if "deletionTimestamp" in old["metadata"]:
            return old
        ends = self.now + timedelta(seconds=seconds)
        old["metadata"]["deletionTimestamp"] = metadata.timestamp(ends)
        if resource == PODS:
            old["metadata"]["deletionGracePeriodSeconds"] = seconds
        return self.ledger.put(Key(resource, namespace, name), old)

    def settle(self) -> None:
        """Do what the controllers of a cluster would: namespaces that end, garbage, endpoints, until all is quiet."""
        revision = -1
        while revision != self.ledger.revision:
            revision = self.ledger.revision
            collector.collect(self.ledger)
            slices.reconcile(self.ledger)
            mirroring.reconcile(self.ledger)

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        if not resource.namespaced:
            return
        found = self.get(NAMESPACES, "", namespace)
        if "deletionTimestamp" in found["metadata"]:
            detail = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(resource, name, detail)

    def _judge(self, placed: kinds.Placed) -> None:
        causes = metadata.validate(placed.key.resource, placed.new["metadata"])
        if placed.old is not None:
            causes = metadata.validate_update(placed.new["metadata"], placed.old["metadata"]) + causes
        causes += kinds.of(placed.key.resource).judge(placed)
        if causes:
            raise invalid(placed.key.resource.kind, placed.key.name, causes, group=placed.key.resource.group)


def _is_held(resource: Resource, value: Object) -> bool:
    """Return whether an ending object must stay: a Pod until its kubelet lets go, others for their finalizers."""
    return resource in (PODS, NAMESPACES) or bool(value["metadata"].get("finalizers"))
