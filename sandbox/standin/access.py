"""Who asks, and what they may do: bearer tokens, and RBAC by the Roles and RoleBindings that are stored."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.standin.ledger import Key, Ledger
from sandbox.standin.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    REVIEWS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Object,
    Resource,
)
from sandbox.standin.status import forbidden, not_found, unauthorized

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
# what every authenticated user may do (ClusterRole system:basic-user)
_BASIC_RULES: tuple[Object, ...] = (
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": [resource.plural for resource in REVIEWS],
    },
)


@dataclass(frozen=True)
class User:
    """Who asks: a name and groups, as messages and bindings tell them."""

    name: str
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Attempt:
    """What somebody wants to do. ``name`` is empty for a whole collection, ``namespace`` for the whole cluster."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def full_resource(self) -> str:
        """The resource as a rule names it: ``services``, ``services/status``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


ANONYMOUS = User("system:anonymous", frozenset({"system:unauthenticated"}))
ADMIN = User("admin", frozenset({MASTERS, AUTHENTICATED}))


class Access:
    """Authentication and authorisation over one ledger.

    ``admin_token`` may do everything. ``everyone`` is who asks without a token: nobody in particular, unless the
    stand-in is open to all. A token of a ServiceAccount is good while that very ServiceAccount exists (the real
    server notices its end after about 9 s).
    """

    def __init__(self, ledger: Ledger, *, everyone: User = ANONYMOUS) -> None:
        self.admin_token = secrets.token_urlsafe(32)
        self._ledger = ledger
        self._everyone = everyone
        self._accounts: dict[str, tuple[str, str, str]] = {}

    def issue(self, namespace: str, account: str) -> str:
        """Return a new token of a ServiceAccount; 404 when there is none."""
        found = self._ledger.get(Key(SERVICE_ACCOUNTS, namespace, account))
        if found is None:
            raise not_found(SERVICE_ACCOUNTS, account)
        token = secrets.token_urlsafe(32)
        self._accounts[token] = (namespace, account, found["metadata"]["uid"])
        return token

    def user(self, token: str | None) -> User:
        """Return who holds ``token``; raise the 401 when nobody does (any more)."""
        if token is None:
            return self._everyone
        if secrets.compare_digest(token.encode(), self.admin_token.encode()):
            return ADMIN
        if token not in self._accounts:
            raise unauthorized()
        namespace, account, uid = self._accounts[token]
        found = self._ledger.get(Key(SERVICE_ACCOUNTS, namespace, account))
        if found is None or found["metadata"]["uid"] != uid:
            raise unauthorized()
        groups = {AUTHENTICATED, "system:serviceaccounts", f"system:serviceaccounts:{namespace}"}
        return User(f"system:serviceaccount:{namespace}:{account}", frozenset(groups))

    def allows(self, user: User, attempt: Attempt) -> bool:
        """Return whether ``user`` may do this. A rule with names covers neither create nor whole collections."""
        if MASTERS in user.groups:
            return True
        return any(_covers(rule, attempt) for rule in self.rules(user, attempt.namespace))

    def check(self, user: User, resource: Resource, attempt: Attempt) -> None:
        """Raise the 403 of kube-apiserver unless ``user`` may do this."""
        if self.allows(user, attempt):
            return
        where = f'in the namespace "{attempt.namespace}"' if attempt.namespace else "at the cluster scope"
        detail = (
            f'User "{user.name}" cannot {attempt.verb} resource "{attempt.full_resource}" '
            f'in API group "{attempt.group}" {where}'
        )
        raise forbidden(resource, attempt.name, detail)

    def rules(self, user: User, namespace: str) -> Iterator[Object]:
        """Return the rules that hold for a user in a namespace (for the whole cluster when that is empty)."""
        if MASTERS in user.groups:
            yield {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        if AUTHENTICATED in user.groups:
            yield from _BASIC_RULES
        bindings = self._ledger.find(CLUSTER_ROLE_BINDINGS)
        if namespace:
            bindings += self._ledger.find(ROLE_BINDINGS, namespace)
        for binding in bindings:
            if any(_is_subject(user, subject) for subject in binding.get("subjects", [])):
                yield from self._rules_of(binding["roleRef"], binding["metadata"].get("namespace", ""))

    def _rules_of(self, role: Object, namespace: str) -> list[Object]:
        key = (
            Key(CLUSTER_ROLES, "", role["name"])
            if role["kind"] == CLUSTER_ROLES.kind
            else Key(ROLES, namespace, role["name"])
        )
        found = self._ledger.get(key)
        return found.get("rules", []) if found is not None else []


def _is_subject(user: User, subject: Object) -> bool:
    match subject["kind"]:
        case "ServiceAccount":
            return user.name == f"system:serviceaccount:{subject.get('namespace', '')}:{subject['name']}"
        case "Group":
            return subject["name"] in user.groups
        case _:
            return bool(user.name == subject["name"])


def _covers(rule: Object, attempt: Attempt) -> bool:
    names = rule.get("resourceNames", [])
    return (
        _among(attempt.verb, rule.get("verbs", []))
        and _among(attempt.group, rule.get("apiGroups", []))
        and _among(attempt.full_resource, rule.get("resources", []))
        and (not names or attempt.name in names)
    )


def _among(value: str, allowed: list[str]) -> bool:
    return "*" in allowed or value in allowed
