"""The rules of object metadata: what is set by the server, what may be set, what may change."""

from __future__ import annotations

from datetime import datetime

from sandbox.standin import naming
from sandbox.standin.resources import EVENTS, RBAC_GROUP, SERVICES, Object, Resource
from sandbox.standin.status import Cause

ANNOTATIONS_LIMIT = 256 * 1024
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
# what a client may send, to no effect
_SERVER_SET = ("creationTimestamp", "generation", "selfLink", "managedFields")
# what a client may send only as it is
_IMMUTABLE = ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")
# what no new object has
_LATER = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def timestamp(moment: datetime) -> str:
    """Return a time as the API writes it: UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def begin(metadata: Object, *, namespace: str, name: str, uid: str, created: datetime) -> Object:
    """Return the metadata of a new object from what its creator sent."""
    sent = {key: value for key, value in metadata.items() if key not in (*_SERVER_SET, *_LATER)}
    placed = {"name": name} | ({"namespace": namespace} if namespace else {})
    return sent | placed | {"uid": uid, "creationTimestamp": timestamp(created)}


def carry(new: Object, old: Object) -> None:
    """Put back into ``new`` what a client cannot change, and what an update may leave out."""
    for key in _SERVER_SET:
        new.pop(key, None)
        if key in old:
            new[key] = old[key]
    for key in _IMMUTABLE:
        if key in old:
            new.setdefault(key, old[key])


def validate(resource: Resource, metadata: Object) -> list[Cause]:
    """Return what is wrong with an object's metadata."""
    causes = _name(resource, metadata.get("name", ""))
    causes += naming.labels("metadata.labels", metadata.get("labels", {}))
    annotations: dict[str, str] = metadata.get("annotations", {})
    for key in annotations:
        causes += naming.qualified("metadata.annotations", key.lower())
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_LIMIT:
        causes.append(
            Cause("FieldValueTooLong", "metadata.annotations", "Too long: may not be more than 262144 bytes")
        )
    return causes + _owners(metadata.get("ownerReferences", []))


def validate_update(new: Object, old: Object) -> list[Cause]:
    """Return what of the metadata may not change as it does."""
    return [
        Cause.invalid(f"metadata.{key}", new.get(key), "field is immutable")
        for key in _IMMUTABLE
        if new.get(key) != old.get(key)
    ]


def _name(resource: Resource, name: str) -> list[Cause]:
    if not name:
        return [Cause.required("metadata.name", "name or generateName is required")]
    if resource.group == RBAC_GROUP:
        return []  # Roles are named as one likes
    # 1.36 lets a Service's name begin with a digit; before it had to be an RFC 1035 label
    if resource == SERVICES or not resource.namespaced:
        return naming.label("metadata.name", name)
    return naming.subdomain("metadata.name", name)


def _owners(owners: list[Object]) -> list[Cause]:
    causes = [
        Cause.invalid(
            f"metadata.ownerReferences.{field}",
            "",
            "version must not be empty" if field == "apiVersion" else "must not be empty",
        )
        for owner in owners
        for field in _OWNER_FIELDS
        if not owner.get(field)
    ]
    causes += [
        Cause.invalid("metadata.ownerReferences", owner, "/v1, Kind=Event is disallowed from being an owner")
        for owner in owners
        if (owner.get("apiVersion"), owner.get("kind")) == (EVENTS.version, EVENTS.kind)
    ]
    controllers = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        causes.append(Cause.invalid("metadata.ownerReferences", owners, detail))
    return causes
