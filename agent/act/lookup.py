"""What a plan needs to know of the cluster, read anew: our Pod, the Service, and whether another Pod is over."""

from __future__ import annotations

from typing import Protocol

from ..decide.ownership import HOLDER, OPERATOR_APP, Around, holder, pod_over, pod_owner
from ..decide.tree import Json, text
from ..model import ApiError, ForbiddenError, NotFoundError
from ..settings import Settings, operators_service_name
from .errors import SEVERAL


class Reads(Protocol):
    """What is needed of `agent.act.kube.Kube`."""

    async def get_pod(self, name: str) -> Json: ...
    async def get_service(self, name: str) -> Json: ...
    async def list_services(self, labels: dict[str, str]) -> list[Json]: ...


async def read_pod(api: Reads, settings: Settings) -> Json | None:
    """Our own Pod; None without the right to read it, or where it is gone: the plan does without.

    Raises:
        ApiError: anything else.
    """
    try:
        return await api.get_pod(settings.identity.pod)
    except (ForbiddenError, NotFoundError):
        return None


async def read_service(api: Reads, settings: Settings, pod: Json | None, kept: str = "") -> Json | None:
    """The Service to keep, None where there is none yet. `pod` is our own, whose labels may name an operator's.

    `kept` names the one that was written to: it stays the one, whatever its labels are now, so that it is parked.

    Raises:
        ApiError: of the request; with the reason `SEVERAL` when SERVICE_LABELS match more than one.
    """
    if settings.service_labels:
        several = await api.list_services(dict(settings.service_labels))
        for service in several:
            if text(service, "metadata", "annotations", HOLDER) == settings.identity.holder:
                return service
        if kept:
            try:
                return await api.get_service(kept)
            except NotFoundError:
                pass
        if len(several) > 1:
            names = ", ".join(sorted(text(one, "metadata", "name") for one in several))
            raise ApiError(0, SEVERAL, f"SPARK_UI_AGENT_SERVICE_LABELS match several Services: {names}")
        return several[0] if several else None
    candidates = [settings.service]
    app = text(pod, "metadata", "labels", OPERATOR_APP)
    if app and not settings.service_given:
        candidates.insert(0, operators_service_name(app))
    found: Json | None = None
    for candidate in candidates:
        try:
            service = await api.get_service(candidate)
        except NotFoundError:
            continue
        if text(service, "metadata", "annotations", HOLDER) == settings.identity.holder:
            return service  # what was taken stays the one, so that it is parked again
        found = found or service
    return found


async def read_around(api: Reads, settings: Settings, pod: Json | None, service: Json | None) -> Around:
    """Whether the Pods that hold and own `service` are over; its slices are not looked at.

    Raises:
        ApiError: a Pod could not be read, though there may be a right to.
    """
    holds, owns = (holder(service), pod_owner(service)) if service is not None else (None, None)
    holder_gone = await _over(api, settings, holds)
    owner_gone = holder_gone if owns == holds else await _over(api, settings, owns)
    return Around(pod, holder_gone, owner_gone)


async def _over(api: Reads, settings: Settings, mark: tuple[str, str] | None) -> bool:
    """True when `mark` names another Pod than ours, which is known to be over."""
    if mark is None or mark == (settings.identity.pod, settings.identity.uid):
        return False
    pod, uid = mark
    try:
        return pod_over(await api.get_pod(pod), uid)
    except NotFoundError:
        return True
    except ForbiddenError:
        return False
