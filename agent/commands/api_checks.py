"""The part of `check` that asks the API server: is it reachable, which rights are there, would the write pass."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from ..act.kube import Kube
from ..model import ApiError, UnauthorizedError, UnreachableError
from ..settings import Settings
from .findings import Finding, note, ok, problem
from .trial import trial

_ROLE = "add the verb to the Role of the Pod's ServiceAccount"


@dataclass(frozen=True, slots=True)
class Right:
    """One verb, whether the agent can do without it, and what is lost then."""

    verb: str
    resource: str
    lost: str
    needed: bool = False
    group: str = ""
    named: bool = False  # may be limited to the Service's name


def rights(settings: Settings) -> list[Right]:
    """What these settings make use of."""
    found = [
        Right("get", "services", "no Service can be kept", needed=True, named=True),
        Right("patch", "services", "no Service can be kept", needed=True, named=True),
        Right(
            "list",
            "endpointslices",
            "that nothing leads here any more is assumed 100 ms after the write, not seen",
            group="discovery.k8s.io",
        ),
        Right(
            "get",
            "pods",
            "no Service is created, one held by a dead driver stays blocked, the driver's end is seen late",
        ),
        Right("create", "events", "no Events on the Pod"),
    ]
    if settings.service_labels:
        lost = "SPARK_UI_AGENT_SERVICE_LABELS can't be looked up"
        found.append(Right("list", "services", lost, needed=True))
    elif settings.create:
        found.append(Right("create", "services", "a missing Service is not created"))
        found.append(
            Right(
                "delete",
                "services",
                "a created Service stays until its Pod is deleted; one that a dead Pod owns can't be taken over",
                named=True,
            )
        )
    return found


async def api_findings(kube: Kube, settings: Settings) -> AsyncIterator[Finding]:
    """Ends after the first finding when the API server can't be asked at all."""
    try:
        await kube.allowed("get", "services", name=settings.service)
    except UnreachableError as error:
        remedy = "check KUBERNETES_SERVICE_HOST and NetworkPolicies"
        if error.reason in ("BadCertificate", "NoCA"):
            remedy = "name the cluster's CA in SPARK_UI_AGENT_CA_FILE"
        yield problem("API server", f"{settings.api_url} can't be used: {error}", remedy)
        return
    except UnauthorizedError as error:
        yield problem(
            "API server", f"is not asked or does not know us: {error}", "give a valid ServiceAccount token"
        )
        return
    except ApiError as error:
        yield note("API server", f"does not tell rights: {error}")
    else:
        yield ok("API server", f"{settings.api_url} answers and knows our token")
        for right in rights(settings):
            yield await _right(kube, settings, right)
    yield await trial(kube, settings)


async def _right(kube: Kube, settings: Settings, right: Right) -> Finding:
    subject = f"right to {right.verb} {right.resource}"
    try:
        allowed = await kube.allowed(
            right.verb, right.resource, right.group, settings.service if right.named else ""
        )
    except ApiError as error:
        return note(subject, f"not told: {error}")
    if allowed:
        return ok(subject, "granted")
    tell = problem if right.needed else note
    return tell(subject, f"missing: {right.lost}", _ROLE)
