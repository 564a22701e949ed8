"""The API over a store, from request to reply, without a socket: routes, rights and verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sandbox.standin import bodies, reviews
from sandbox.standin.access import Access, User
from sandbox.standin.request import Reply, Request, Target, target
from sandbox.standin.resources import REVIEWS, Object
from sandbox.standin.selection import Selection
from sandbox.standin.status import StatusError, internal, method_not_allowed
from sandbox.standin.store import Store
from sandbox.standin.watching import Watch

VERSION: Object = {"major": "1", "minor": "36", "gitVersion": "v1.36.0-standin", "platform": "linux/amd64"}


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
                options = bodies.delete_options(request)
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
        bodies.check_content_type(request)
        dry_run = bodies.check_options(request, "create")
        sent, warnings = bodies.decode_sent(request, wanted)
        created = self.store.create(wanted.resource, wanted.namespace, sent, dry_run=dry_run)
        return Reply(201, created, warnings)

    def _update(self, request: Request, wanted: Target) -> Reply:
        bodies.check_content_type(request)
        dry_run = bodies.check_options(request, "update")
        sent, warnings = bodies.decode_sent(request, wanted)
        return self._change(wanted, lambda old: bodies.replacing(sent, old), warnings, dry_run=dry_run)

    def _patch(self, request: Request, wanted: Target) -> Reply:
        bodies.check_content_type(request)
        dry_run = bodies.check_options(request, "patch")
        warnings: dict[str, str] = {}
        change = bodies.read_patch(request, wanted, warnings)
        return self._change(wanted, change, warnings, dry_run=dry_run)

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
