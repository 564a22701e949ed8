"""The bodies and options of requests: read, decoded by type, and refused in the words of kube-apiserver 1.36."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

from sandbox.standin import patches
from sandbox.standin.decoding import Decoded, DecodeError, decode
from sandbox.standin.preconditions import DeleteOptions
from sandbox.standin.request import Request, Target
from sandbox.standin.resources import Object
from sandbox.standin.status import Cause, StatusError, bad_request, invalid

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_VALIDATION = ("", "Ignore", "Strict", "Warn")


def replacing(value: Object, old: Object) -> Object:
    """Return a copy of ``value`` that is of the kind of ``old``, as a PUT may leave that out."""
    return {"kind": old["kind"], "apiVersion": old["apiVersion"], **copy.deepcopy(value)}


def check_content_type(request: Request) -> None:
    """Raise the 415 for a body that is not JSON (POST, PUT), or no patch of a known kind (PATCH)."""
    if request.method == "PATCH":
        if request.content_type not in (MERGE_PATCH, STRATEGIC_MERGE_PATCH, JSON_PATCH):
            raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    elif request.content_type != JSON:
        accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise StatusError(415, "UnsupportedMediaType", text)


def check_options(request: Request, verb: str) -> bool:
    """Return whether a write is a dry run; raise the 422 for an option with a value that it can't have."""
    causes = []
    dry_run = request.query.get("dryRun")
    if dry_run not in (None, "", "All"):
        causes.append(Cause.unsupported("dryRun", [dry_run], ("All",)))
    validation = request.query.get("fieldValidation", "")
    if validation not in _VALIDATION:
        causes.append(Cause.unsupported("fieldValidation", validation, _VALIDATION))
    if causes:
        raise invalid(_OPTIONS[verb], "", causes, group="meta.k8s.io")
    return dry_run == "All"


def decode_sent(request: Request, wanted: Target) -> tuple[Object, dict[str, str]]:
    """Decode the object of a POST or PUT: a wrong type or (if strict) an unknown field is a 400 there."""
    sent = request.json_object()
    resource = wanted.resource
    head = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
    if sent.get("kind", resource.kind) != resource.kind:
        raise bad_request(
            f'{sent["kind"]} in version "{resource.version}" cannot be handled as a {resource.kind}'
        )
    if sent.get("apiVersion", resource.api_version) != resource.api_version:
        raise bad_request(
            f"the API version in the data ({sent['apiVersion']}) does not match the expected one"
        )
    try:
        decoded = decode(resource.kind, sent)
    except DecodeError as error:
        raise bad_request(f"{head}: {error}") from error
    if decoded.unknown and _is_strict(request):
        raise bad_request(f"{head}: {_strict_words(decoded)}")
    return decoded.object, _warnings(request, decoded)


def read_patch(request: Request, wanted: Target, warnings: dict[str, str]) -> Callable[[Object], Object]:
    """Return what a PATCH makes of an object; 400 when it can't be read.

    The function raises the 422 for an outcome that is not of the right type. It puts into ``warnings`` the header
    that speaks of unknown fields.
    """
    apply = _patch(request)

    def change(old: Object) -> Object:
        decoded = _decode_patched(wanted, apply(old), strict=_is_strict(request))
        warnings.update(_warnings(request, decoded))
        return replacing(decoded.object, old)

    return change


def delete_options(request: Request) -> DeleteOptions:
    """Return what a DELETE asks for, in its body or (grace, dryRun) its query; 400 when it can't be read."""
    sent = request.json_object() if request.body else {}
    preconditions = sent.get("preconditions") or {}
    grace = sent.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    if grace is not None and not str(grace).isdecimal():
        raise bad_request(f"gracePeriodSeconds: {grace!r} is no number of seconds")
    return DeleteOptions(
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        grace=None if grace is None else int(grace),
        dry_run="All" in (request.query.get("dryRun"), *sent.get("dryRun", [])),
    )


def _patch(request: Request) -> Callable[[Object], object]:
    try:
        patch = request.json()
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if request.content_type == JSON_PATCH:
        if not isinstance(patch, list):
            raise bad_request(
                "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
            )
        return lambda old: patches.operations(old, patch)
    if not isinstance(patch, dict):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
    if request.content_type == MERGE_PATCH:
        return lambda old: patches.merge(old, patch)
    return lambda old: patches.strategic(old, patch)


def _is_strict(request: Request) -> bool:
    return request.query.get("fieldValidation") == "Strict"


def _warnings(request: Request, decoded: Decoded) -> dict[str, str]:
    """Return the Warning header that 1.27 and newer send for unknown fields unless told to ignore them."""
    if request.query.get("fieldValidation") == "Ignore" or not decoded.unknown:
        return {}
    return {"Warning": ", ".join(f'299 - "unknown field \\"{path}\\""' for path in decoded.unknown)}


def _decode_patched(wanted: Target, patched: object, *, strict: bool) -> Decoded:
    """Decode what a patch makes of an object: what is wrong is a 422 that shows the whole of it."""
    resource = wanted.resource
    shown = json.dumps(patched, separators=(",", ":"))
    if not isinstance(patched, dict):
        raise invalid("", "", [Cause.invalid("patch", shown, "not an object")])
    if (patched.get("kind"), patched.get("apiVersion")) != (resource.kind, resource.api_version):
        raise invalid("", "", [Cause.invalid("patch", shown, "kind and apiVersion may not change")])
    try:
        decoded = decode(resource.kind, patched)
    except DecodeError as error:
        raise invalid("", "", [Cause.invalid("patch", shown, str(error))]) from error
    if decoded.unknown and strict:
        raise invalid("", "", [Cause.invalid("patch", shown, _strict_words(decoded))])
    return decoded


def _strict_words(decoded: Decoded) -> str:
    return "strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in decoded.unknown)
