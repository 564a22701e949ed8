"""What would be done to the Service if a UI were proven now, tried on the API server as a dry run."""

from __future__ import annotations

from ..act.kube import Kube
from ..act.lookup import read_around, read_pod, read_service
from ..decide.ownership import SCHEME, entry
from ..decide.service import Create, Delete, Nothing, Patch, Refuse, plan
from ..decide.tree import Json, at, items, text
from ..model import ApiError, Proof, Scheme, Serve
from ..settings import Settings
from .findings import Finding, ok, problem

_TRIAL_PORT = 4040  # stands for the port that the UI will have


async def trial(kube: Kube, settings: Settings) -> Finding:
    """The Service as found and what follows; never raises an ApiError."""
    name = settings.service
    try:
        pod = await read_pod(kube, settings)
        service = await read_service(kube, settings, pod)
        name = text(service, "metadata", "name") or name
        around = await read_around(kube, settings, pod, service)
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


def _port(service: Json | None, settings: Settings) -> int:
    """The port that the Service leads to now, so that a published one counts as already right."""
    index = None if service is None else entry(service, settings)
    found = None if index is None else at(items(service, "spec", "ports")[index], "targetPort")
    return found if isinstance(found, int) else _TRIAL_PORT
