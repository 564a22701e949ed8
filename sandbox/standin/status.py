"""Answers that are no success: the Status objects of the API, worded as kube-apiserver 1.36 words them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sandbox.standin.resources import Object, Resource


@dataclass(frozen=True)
class Cause:
    """One fault of one field. ``reason`` is the API's (FieldValueInvalid and the like)."""

    reason: str
    field: str
    message: str

    @classmethod
    def invalid(cls, field: str, value: object, detail: str) -> Self:
        """Return the cause for a value that breaks a rule."""
        return cls("FieldValueInvalid", field, f"Invalid value: {_compact(value)}: {detail}")

    @classmethod
    def required(cls, field: str, detail: str = "") -> Self:
        """Return the cause for a value that is missing."""
        return cls("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")

    @classmethod
    def duplicate(cls, field: str, value: object) -> Self:
        """Return the cause for a value that may stand only once."""
        return cls("FieldValueDuplicate", field, f"Duplicate value: {_compact(value)}")

    @classmethod
    def forbidden(cls, field: str, detail: str) -> Self:
        """Return the cause for a field that may not be set, or changed, here."""
        return cls("FieldValueForbidden", field, f"Forbidden: {detail}")

    @classmethod
    def unsupported(cls, field: str, value: object, allowed: Sequence[str]) -> Self:
        """Return the cause for a value outside of a closed list."""
        names = ", ".join(_compact(name) for name in sorted(allowed))
        message = f"Unsupported value: {_compact(value)}: supported values: {names}"
        return cls("FieldValueNotSupported", field, message)


class StatusError(Exception):
    """A refusal, with the HTTP status and the Status object that tell it."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def body(self) -> Object:
        """Return the Status object."""
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return body | {"code": self.code}


def about(resource: Resource, name: str = "") -> Object:
    """Return the details that say which object a Status speaks of."""
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in details.items() if value}


def not_found(resource: Resource, name: str) -> StatusError:
    """Return the 404 for an object that does not exist."""
    return StatusError(404, "NotFound", f'{resource.qualified} "{name}" not found', about(resource, name))


def no_such_path() -> StatusError:
    """Return the 404 for a path that names no resource."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> StatusError:
    """Return the 405 for a verb that the resource does not have."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def already_exists(resource: Resource, name: str) -> StatusError:
    """Return the 409 for a POST of a name that is taken."""
    message = f'{resource.qualified} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, about(resource, name))


def conflict(resource: Resource, name: str) -> StatusError:
    """Return the 409 for a write whose resourceVersion is not the present one."""
    message = (
        f'Operation cannot be fulfilled on {resource.qualified} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return StatusError(409, "Conflict", message, about(resource, name))


def precondition_failed(resource: Resource, name: str, detail: str) -> StatusError:
    """Return the 409 for a DELETE whose precondition does not hold."""
    message = f'Operation cannot be fulfilled on {resource.kind} "{name}": {detail}'
    return StatusError(409, "Conflict", message, {"name": name, "kind": resource.kind})


def invalid(kind: str, name: str, causes: Sequence[Cause], *, group: str = "") -> StatusError:
    """Return the 422 that lists what is wrong with an object."""
    faults = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    details: Object = {
        key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value
    }
    details["causes"] = [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
    ]
    qualified = f"{kind}.{group}" if group else kind
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {listed}', details)


def forbidden(resource: Resource, name: str, detail: str) -> StatusError:
    """Return a 403. ``detail`` says who may not do what."""
    subject = f'{resource.qualified} "{name}"' if name else resource.qualified
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {detail}", about(resource, name))


def unauthorized() -> StatusError:
    """Return the 401 for a token that nobody issued, or whose ServiceAccount is gone."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> StatusError:
    """Return a 400."""
    return StatusError(400, "BadRequest", message)


def internal(message: str) -> StatusError:
    """Return a 500; kube-apiserver gives it without a reason where a resourceVersion is no number."""
    return StatusError(500, "", message)


def expired() -> StatusError:
    """Return the 410 for a watch from a version that is no longer kept."""
    return StatusError(410, "Expired", "The resourceVersion for the provided watch is too old.")


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
