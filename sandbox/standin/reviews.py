"""The requests that store nothing: may I do this, what may I do, give me a token."""

from __future__ import annotations

from datetime import datetime, timedelta

from sandbox.standin.access import Access, Attempt, User
from sandbox.standin.metadata import timestamp
from sandbox.standin.request import Target
from sandbox.standin.resources import ACCESS_REVIEWS, Object, Resource
from sandbox.standin.status import Cause, invalid

HOUR = 3600


def review(resource: Resource, sent: Object, user: User, access: Access) -> Object:
    """Answer a SelfSubjectAccessReview or a SelfSubjectRulesReview for ``user``; 422 without attributes."""
    spec = sent.get("spec") or {}
    answer: Object = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {},
        "spec": spec,
    }
    if resource == ACCESS_REVIEWS:
        return answer | {"status": _access(spec, user, access)}
    rules = list(access.rules(user, spec.get("namespace", "")))
    status = {"resourceRules": rules, "nonResourceRules": [], "incomplete": False}
    return answer | {"spec": {}, "status": status}


def token_request(target: Target, sent: Object, token: str, now: datetime) -> Object:
    """Answer a TokenRequest with ``token``, which does not end before its ServiceAccount does."""
    seconds = (sent.get("spec") or {}).get("expirationSeconds") or HOUR
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": target.name, "namespace": target.namespace},
        "spec": {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": timestamp(now + timedelta(seconds=seconds))},
    }


def _access(spec: Object, user: User, access: Access) -> Object:
    wanted = spec.get("resourceAttributes")
    if wanted is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(
            "", "", [Cause.invalid("spec.resourceAttributes", None, detail)], group="authorization.k8s.io"
        )
    attempt = Attempt(
        verb=wanted.get("verb", ""),
        group=wanted.get("group", ""),
        resource=wanted.get("resource", ""),
        subresource=wanted.get("subresource", ""),
        namespace=wanted.get("namespace", ""),
        name=wanted.get("name", ""),
    )
    return {"allowed": access.allows(user, attempt)}
