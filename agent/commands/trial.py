"""What would be done to the Service if a UI were proven now, tried on the API server as a dry run."""

from __future__ import annotations

from ..act.kube import Kube
from ..decide.ownership import OPERATOR_APP, SCHEME, Around, entry, holder, pod_over, pod_owner
from ..decide.service import Create, Delete, Nothing, Patch, Refuse, plan
from ..decide.tree import Json, at, items, text
from ..model import ApiError, ForbiddenError, NotFoundError, Proof, Scheme, Serve
from ..settings import Settings
from .findings import Finding, ok, problem

_TRIAL_PORT = 4040  # stands for the port that the UI will have


async def trial(kube: Kube, settings: Settings) -> Finding:
    """The Service as found and what follows; never raises an ApiError."""
    name = settings.service
    try:
        pod = await _pod(kube, settings)
        service = await _find(kube, settings, pod)
        name = text(service, "metadata", "name") or name
        around = Around(pod=pod, holder_gone=await _holder_gone(kube, settings, service))
        https = text(service, "metadata", "annotations", SCHEME) == Scheme.HTTPS
        wanted = Serve(
            _port(service, settings),
            Scheme.HTTPS if https else Scheme.HTTP,
            settings.identity.application,
            Proof.REST,
        )
        match plan(service, wanted, settings, around):
            case Nothing():
                return ok(f"Service {name}", "leads to this Pod already")
            case Refuse(why):
                return problem(f"Service {name}", why.found, why.remedy)
            case Create(body):
                await kube.create_service(body, dry_run=True)
                return ok(f"Service {name}", "does not exist, would be created (dry run accepted)")
            case Patch(_, body):
                await kube.patch_service(name, body, dry_run=True)
                return ok(f"Service {name}", "exists, would be patched to lead here (dry run accepted)")
            case Delete():
                return ok(f"Service {name}", "a Pod that is over owns it: would be deleted and made anew")
    except ApiError as error:
        return problem(
            f"Service {name}", f"the trial failed: {error}", "see the message and the rights above"
        )


async def _pod(kube: Kube, settings: Settings) -> Json | None:
    try:
        return await kube.get_pod(settings.identity.pod)
    except (ForbiddenError, NotFoundError):
        return None


async def _find(kube: Kube, settings: Settings, pod: Json | None) -> Json | None:
    if settings.service_labels:
        found = await kube.list_services(settings.service_labels)
        if len(found) > 1:
            names = ", ".join(sorted(text(one, "metadata", "name") for one in found))
            raise ApiError(0, "Several", f"SPARK_UI_AGENT_SERVICE_LABELS match several Services: {names}")
        return found[0] if found else None
    app = "" if settings.service_given else text(pod, "metadata", "labels", OPERATOR_APP)
    for name in filter(None, (app and f"{app}-ui-svc", settings.service)):
        try:
            return await kube.get_service(name)
        except NotFoundError:
            continue
    return None


async def _holder_gone(kube: Kube, settings: Settings, service: Json | None) -> bool:
    """Whether the other Pod that holds or owns the Service is over; one that can't be read is not."""
    if service is None:
        return False
    own = (settings.identity.pod, settings.identity.uid)
    gone = False
    for mark in (holder(service), pod_owner(service)):
        if mark is not None and mark != own:
            try:
                gone = pod_over(await kube.get_pod(mark[0]), mark[1])
            except NotFoundError:
                gone = True
            except ForbiddenError:
                gone = False
    return gone


def _port(service: Json | None, settings: Settings) -> int:
    """The port that the Service leads to now, so that a published one counts as already right."""
    index = None if service is None else entry(service, settings)
    found = None if index is None else at(items(service, "spec", "ports")[index], "targetPort")
    return found if isinstance(found, int) else _TRIAL_PORT
