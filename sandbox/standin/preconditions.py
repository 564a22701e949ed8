"""What a write may ask of the object that it finds: its place, its version, its uid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.standin.resources import Object, Resource
from sandbox.standin.status import bad_request, conflict, internal, precondition_failed

OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


@dataclass(frozen=True)
class DeleteOptions:
    """What a DELETE may ask for: preconditions, and a Pod's time to end, in seconds."""

    uid: str | None = None
    resource_version: str | None = None
    grace: int | None = None
    dry_run: bool = False


def check_place(sent: Object, namespace: str, name: str) -> None:
    """Raise the 400 for a body that names another place than its URL."""
    if sent.get("name", name) != name:
        raise bad_request(
            f"the name of the object ({sent['name']}) does not match the name on the URL ({name})"
        )
    if sent.get("namespace", namespace) != namespace:
        raise bad_request(OTHER_NAMESPACE)


def check_version(resource: Resource, name: str, sent: Object, old: Object) -> None:
    """Raise the 409 for a version that is not the present one, the 500 for one that is no number."""
    version = sent.get("resourceVersion", "")
    if version in ("", "0"):
        return
    if not version.isdecimal():
        raise internal(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if version != old["resourceVersion"]:
        raise conflict(resource, name)


def check_delete(resource: Resource, name: str, old: Mapping[str, str], options: DeleteOptions) -> None:
    """Raise the 409 for a DELETE that asks for another object, or another state of it."""
    if options.uid is not None and options.uid != old["uid"]:
        detail = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({old['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise precondition_failed(resource, name, detail)
    asked, held = options.resource_version, old["resourceVersion"]
    if asked is not None and asked != held:
        detail = (
            f"the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record "
            f"({held}). The object might have been modified"
        )
        raise precondition_failed(resource, name, detail)
