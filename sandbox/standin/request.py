"""One request as the API reads it: what its path names, and by which verb."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from sandbox.standin.access import Attempt
from sandbox.standin.resources import BY_PATH, NAMESPACES, Object, Resource
from sandbox.standin.status import bad_request, method_not_allowed, no_such_path

_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


@dataclass(frozen=True)
class Request:
    """What came over the wire. ``token`` is that of the Authorization header, None without one."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""
    token: str | None = None

    def json(self) -> object:
        """Return the decoded body; raise ValueError when it is no JSON."""
        return json.loads(self.body)

    def json_object(self) -> Object:
        """Return the body when it is a JSON object; raise `StatusError` 400 otherwise."""
        try:
            value = self.json()
        except ValueError as error:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
        if not isinstance(value, dict):
            raise bad_request("couldn't get version/kind; json parse error: not an object")
        return value


@dataclass(frozen=True)
class Reply:
    """What goes back: a JSON object, or plain text where the API gives that."""

    status: int
    body: Object | str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """What a request is about. ``namespace`` is empty for the whole cluster, ``name`` for a collection."""

    verb: str
    resource: Resource
    namespace: str
    name: str
    subresource: str

    def attempt(self, name: str) -> Attempt:
        """Return what RBAC has to allow; ``name`` is the one object that a list or a watch is narrowed to."""
        # a Namespace is its own namespace to RBAC
        place = self.name if self.resource == NAMESPACES else self.namespace
        return Attempt(
            self.verb, self.resource.group, self.resource.plural, self.subresource, place, self.name or name
        )


def target(request: Request) -> Target:
    """Return what a request is about; raise `StatusError` 404 or 405 when there is no such thing."""
    match [part for part in request.path.split("/") if part]:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            raise no_such_path()
    namespace = ""
    if len(rest) > 2 and rest[0] == NAMESPACES.plural and (group, version, rest[2]) in BY_PATH:
        namespace, rest = rest[1], rest[2:]
    if not rest or len(rest) > 3:
        raise no_such_path()
    plural, name, subresource = (*rest, "", "")[:3]
    resource = BY_PATH.get((group, version, plural))
    if resource is None or (subresource and subresource not in resource.subresources):
        raise no_such_path()
    if (name and resource.namespaced and not namespace) or (namespace and not resource.namespaced):
        raise no_such_path()
    return Target(_verb(request, name, subresource), resource, namespace, name, subresource)


def _verb(request: Request, name: str, subresource: str) -> str:
    if request.method == "GET":
        if request.query.get("watch") in ("true", "1"):
            return "watch"
        return "get" if name else "list"
    verb = _VERBS.get(request.method)
    if verb is None or (bool(name) == (verb == "create") and subresource != "token"):
        raise method_not_allowed()
    return verb
