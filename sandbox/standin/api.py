"""The API over a store, from request to reply, without a socket: routes, rights, content types, decoding."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence

from sandbox.standin import patches, reviews
from sandbox.standin.access import Access, User
from sandbox.standin.request import Reply, Request, Target, target
from sandbox.standin.resources import REVIEWS, Object
from sandbox.standin.schema import Decoded, DecodeError, decode
from sandbox.standin.selection import Selection
from sandbox.standin.status import Cause, StatusError, bad_request, internal, invalid, method_not_allowed
from sandbox.standin.store import DeleteOptions, Store
from sandbox.standin.watching import Watch

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
VERSION: Object = {"major": "1", "minor": "36", "gitVersion": "v1.36.0-standin", "platform": "linux/amd64"}

_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_VALIDATION = ("", "Ignore", "Strict", "Warn")


class Api:
    """Answers requests as kube-apiserver 1.36 does, from one `Store` under one `Access`."""

    def __init__(self, store: Store, access: Access) -> None:
        self.store = store
        self.access = access

    def handle(self, request: Request) -> Reply:
        """Answer a request that is no watch. Every refusal is a reply too: a Status object."""
        try:
            return self._handle(request)
        except StatusError as error:
            return Reply(error.code, error.body())

    def watch(self, request: Request) -> Watch:
        """Open the watch that a request asks for; raise `StatusError` when it is refused."""
        wanted = target(request)
        selection = self._admit(request, wanted)
        version = request.query.get("resourceVersion", "")
        if version and not version.isdecimal():
            raise internal(
                f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": '
                "invalid syntax"
            )
        narrowed = selection
        if wanted.name:
            narrowed = Selection(fields=(("metadata.name", True, wanted.name),))
        return Watch(
            self.store.ledger,
            wanted.resource,
            wanted.namespace or None,
            narrowed,
            int(version) if version not in ("", "0") else None,
        )

    def _handle(self, request: Request) -> Reply:
        if request.path in ("/readyz", "/livez", "/healthz"):
            return Reply(200, "ok")
        user = self.access.user(request.token)
        if request.path == "/version":
            return Reply(200, VERSION)
        wanted = target(request)
        selection = self._admit(request, wanted)
        if wanted.resource in REVIEWS:
            return self._review(request, wanted, user)
        if wanted.subresource == "token":
            token = self.access.issue(wanted.namespace, wanted.name)
            return Reply(201, reviews.token_request(wanted, request.json_object(), token, self.store.now))
        match wanted.verb:
            case "get":
                return Reply(200, self.store.get(wanted.resource, wanted.namespace, wanted.name))
            case "list":
                return Reply(200, self._list(wanted, selection))
            case "create":
                return self._create(request, wanted)
            case "patch":
                return self._patch(request, wanted)
            case "update":
                return self._update(request, wanted)
            case _:
                options = _delete_options(request)
                gone = self.store.delete(wanted.resource, wanted.namespace, wanted.name, options)
                return Reply(200, gone)

    def _admit(self, request: Request, wanted: Target) -> Selection:
        user = self.access.user(request.token)
        selection = Selection()
        if wanted.verb in ("list", "watch"):
            selection = Selection.parse(wanted.resource, request.query)
        self.access.check(user, wanted.resource, wanted.attempt(selection.name))
        return selection

    def _review(self, request: Request, wanted: Target, user: User) -> Reply:
        if wanted.verb != "create":
            raise method_not_allowed()
        return Reply(201, reviews.review(wanted.resource, request.json_object(), user, self.access))

    def _list(self, wanted: Target, selection: Selection) -> Object:
        items = self.store.list(wanted.resource, wanted.namespace or None, selection)
        for item in items:  # a list says once of what kind its items are
            del item["kind"], item["apiVersion"]
        return {
            "kind": f"{wanted.resource.kind}List",
            "apiVersion": wanted.resource.api_version,
            "metadata": {"resourceVersion": str(self.store.ledger.revision)},
            "items": items,
        }

    def _create(self, request: Request, wanted: Target) -> Reply:
        dry_run = _check_options(request, "create")
        _check_content_type(request, (JSON,), "")
        sent, headers = _decode_sent(request, wanted)
        created = self.store.create(wanted.resource, wanted.namespace, sent, dry_run=dry_run)
        return Reply(201, created, headers)

    def _update(self, request: Request, wanted: Target) -> Reply:
        dry_run = _check_options(request, "update")
        _check_content_type(request, (JSON,), "")
        sent, headers = _decode_sent(request, wanted)
        return self._change(wanted, lambda old: _typed(sent, old), headers, dry_run=dry_run)

    def _patch(self, request: Request, wanted: Target) -> Reply:
        _check_content_type(
            request, (MERGE_PATCH, STRATEGIC_MERGE_PATCH, JSON_PATCH), "415: Unsupported Media Type"
        )
        dry_run = _check_options(request, "patch")
        apply = _read_patch(request)
        headers: dict[str, str] = {}

        def change(old: Object) -> Object:
            patched = apply(old)
            decoded = _decode_patched(wanted, patched, strict=_is_strict(request))
            headers.update(_warnings(request, decoded))
            return _typed(decoded.object, old)

        return self._change(wanted, change, headers, dry_run=dry_run)

    def _change(
        self,
        wanted: Target,
        change: Callable[[Object], Object],
        headers: Mapping[str, str],
        *,
        dry_run: bool,
    ) -> Reply:
        changed = self.store.update(
            wanted.resource,
            wanted.namespace,
            wanted.name,
            change,
            subresource=wanted.subresource,
            dry_run=dry_run,
        )
        return Reply(200, changed, headers)


def _typed(value: Object, old: Object) -> Object:
    return {"kind": old["kind"], "apiVersion": old["apiVersion"], **copy.deepcopy(value)}


def _check_content_type(request: Request, allowed: Sequence[str], message: str) -> None:
    if request.content_type in allowed:
        return
    if message:
        raise StatusError(415, "UnsupportedMediaType", message, {})
    accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    raise StatusError(415, "UnsupportedMediaType", text)


def _check_options(request: Request, verb: str) -> bool:
    """Check the query of a write, and return whether it is a dry run."""
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


def _is_strict(request: Request) -> bool:
    return request.query.get("fieldValidation") == "Strict"


def _warnings(request: Request, decoded: Decoded) -> dict[str, str]:
    """Return the Warning header that 1.27 and newer send for unknown fields unless told to ignore them."""
    if request.query.get("fieldValidation") == "Ignore" or not decoded.unknown:
        return {}
    return {"Warning": ", ".join(f'299 - "unknown field \\"{path}\\""' for path in decoded.unknown)}


def _decode_sent(request: Request, wanted: Target) -> tuple[Object, dict[str, str]]:
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


def _read_patch(request: Request) -> Callable[[Object], object]:
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


def _delete_options(request: Request) -> DeleteOptions:
    sent = request.json_object() if request.body else {}
    preconditions = sent.get("preconditions") or {}
    grace = sent.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    return DeleteOptions(
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        grace=None if grace is None else int(grace),
        dry_run="All" in (request.query.get("dryRun"), *sent.get("dryRun", [])),
    )
