"""The live Service and what is wanted -> the one step that brings them together.

The facts about kube-apiserver that shape the bodies (measured on 1.36):
a selector taken away leaves the endpoints in place for ever, so a Service is withdrawn by a selector that matches
nothing; merge-patch keeps foreign map keys unless they are null, and replaces lists, so the ports list goes whole;
`metadata.resourceVersion` of what was read makes a stale write a 409, `metadata.uid` makes one to a namesake a 422.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..model import Desired, Park, Release, Serve, Trouble
from ..settings import Settings
from .ownership import (
    APPLICATION,
    CREATED_BY,
    EPOCH,
    HOLDER,
    MARKS,
    PARKED,
    PORT,
    SCHEME,
    STATE,
    Around,
    entry,
    holder,
    not_ours,
    pod_owner,
    routes_here,
    selector,
    target,
    unusable,
)
from .tree import Json, at, items, mapping, strings, text


@dataclass(frozen=True, slots=True)
class Nothing:
    """The Service is as wanted, or not there and not wanted. `exposed`: its slices may hold this Pod."""

    exposed: bool


@dataclass(frozen=True, slots=True)
class Create:
    """POST `body`: a parked Service, to be published by a patch."""

    body: Json


@dataclass(frozen=True, slots=True)
class Patch:
    """Merge-patch `body` on the Service `name`. `moves`: endpoints may lead here at another port than it serves."""

    name: str
    body: Json
    moves: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE the Service `name` if it still is `uid`."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The Service can't be used; nothing is written."""

    why: Trouble


Step = Nothing | Create | Patch | Delete | Refuse


def plan(service: Json | None, desired: Desired, settings: Settings, around: Around) -> Step:
    """The next step. After a write it is asked again, with the answer, until it says Nothing or Refuse."""
    own = selector(settings, around.pod)
    if service is None:
        if not isinstance(desired, Serve):
            return Nothing(exposed=False)
        return Refuse(own) if isinstance(own, Trouble) else _create(desired, settings, around)
    if isinstance(own, Trouble):
        # Without labels of our own nothing of ours can have been written here.
        return Refuse(own) if isinstance(desired, Serve) else Nothing(exposed=False)
    here = routes_here(service, around.pod, own)
    marked = holder(service) == (settings.identity.pod, settings.identity.uid)
    refusal = not_ours(service, settings, around, here=here, marked=marked)
    useless = unusable(service, settings)
    if not marked:
        refusal = (
            refusal or useless
        )  # a Service for something else, such as the driver's RPC, is not parked either
    if refusal is not None:
        # What leads here all the same was not made to by us, and is not ours to change.
        return Refuse(refusal) if isinstance(desired, Serve) else Nothing(exposed=False)
    match desired:
        case Serve() if useless is not None:
            # It was ours, and another has changed it since: what it leads to now is proven by nobody.
            return _park(service, settings, around) if here else Refuse(useless)
        case Serve():
            owner = pod_owner(service)
            doomed = around.owner_gone and owner is not None and owner[1] != settings.identity.uid
            if doomed and isinstance(_create(desired, settings, around), Create):
                # Owned by a Pod that is over: garbage collection would take it from under us.
                return _delete(service)
            step = _publish(service, desired, settings, around, own)
            elsewhere = here and target(service, settings) != desired.port
            return replace(step, moves=elsewhere or around.exposed) if isinstance(step, Patch) else step
        case Park() | Release():
            return _withdraw(service, desired, settings, around, here=here, marked=marked)


def _marks(desired: Serve | None, settings: Settings, state: str) -> dict[str, str | None]:
    application = settings.identity.application
    marks: dict[str, str | None] = {HOLDER: settings.identity.holder, STATE: state}
    marks[PORT] = marks[SCHEME] = None
    if desired is not None:
        application = desired.application or application
        marks[PORT] = str(desired.port)
        marks[SCHEME] = desired.scheme.value
    marks[APPLICATION] = application or None
    return marks


def _create(desired: Serve, settings: Settings, around: Around) -> Step:
    if not settings.create:
        return Refuse(
            Trouble(
                "service",
                f"Service {settings.service} does not exist and SPARK_UI_AGENT_CREATE is false",
                "create it, or set SPARK_UI_AGENT_CREATE=true",
            )
        )
    if settings.service_labels:
        return Refuse(
            Trouble(
                "service",
                f"no Service in namespace {settings.identity.namespace} has the labels {_pairs(settings.service_labels)} "
                "of SPARK_UI_AGENT_SERVICE_LABELS",
                "create one with these labels",
            )
        )
    if around.pod is None or text(around.pod, "metadata", "uid") != settings.identity.uid:
        # A wrong owner is accepted, and the Service deleted 12 ms later; none at all would outlive the Pod.
        return Refuse(
            Trouble(
                "rbac",
                f"Service {settings.service} does not exist, and this Pod, its owner to be, can't be read",
                "allow the verb get on pods, or create the Service",
            )
        )
    annotations = dict(settings.create_annotations)
    annotations.update(
        {key: value for key, value in _marks(None, settings, "parked").items() if value is not None}
    )
    annotations[CREATED_BY] = settings.identity.holder
    return Create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": settings.service,
                "namespace": settings.identity.namespace,
                "labels": dict(settings.create_labels),
                "annotations": annotations,
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": settings.identity.pod,
                        "uid": settings.identity.uid,
                    }
                ],
            },
            "spec": {
                "type": settings.service_type,
                "selector": {PARKED: settings.identity.uid},
                "ports": [
                    {
                        "name": settings.port_name,
                        "port": settings.expose,
                        "protocol": "TCP",
                        "targetPort": desired.port,
                    }
                ],
            },
        }
    )


def _publish(
    service: Json, desired: Serve, settings: Settings, around: Around, own: Mapping[str, str]
) -> Nothing | Patch:
    before = items(service, "spec", "ports")
    index = entry(service, settings)
    ports = [
        {**port, "targetPort": desired.port} if number == index else port
        for number, port in enumerate(before)
    ]
    marks = _marks(desired, settings, "published")
    same = strings(service, "spec", "selector") == own and ports == before and not _changes(service, marks)
    if same and not around.epoch:
        return Nothing(exposed=True)
    return _patch(service, {"selector": _replaced(service, own), "ports": ports}, marks, around)


def _replaced(service: Json, wanted: Mapping[str, str]) -> dict[str, str | None]:
    """A selector that merge-patch turns into exactly `wanted`: foreign keys are nulled."""
    changed: dict[str, str | None] = dict.fromkeys(strings(service, "spec", "selector"))
    changed.update(wanted)
    return changed


def _withdraw(
    service: Json, desired: Park | Release, settings: Settings, around: Around, *, here: bool, marked: bool
) -> Step:
    found = strings(service, "spec", "selector")
    parked = {PARKED: settings.identity.uid}
    created = text(service, "metadata", "annotations", CREATED_BY) == settings.identity.holder
    # A Service without a selector keeps whatever its slices held before: only a selector empties them.
    stale = not found and around.exposed
    # Without our labels, a selector that is not our own may match this Pod; with them, it is the user's business.
    unsure = marked and around.pod is None and bool(found) and found != parked
    if here or stale or around.epoch or unsure:
        return _park(service, settings, around)
    if marked and not around.empty:
        return Nothing(exposed=True)
    if isinstance(desired, Release) and created:
        return _delete(service)
    if isinstance(desired, Release) and marked:
        return _patch(service, {}, dict.fromkeys(MARKS), around)
    return Nothing(exposed=False)


def _park(service: Json, settings: Settings, around: Around) -> Patch:
    selected = _replaced(service, {PARKED: settings.identity.uid})
    return _patch(service, {"selector": selected}, _marks(None, settings, "parked"), around)


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _delete(service: Json) -> Delete:
    return Delete(text(service, "metadata", "name"), text(service, "metadata", "uid"))


def _changes(service: Json, marks: Mapping[str, str | None]) -> dict[str, str | None]:
    found = mapping(service, "metadata", "annotations")
    return {key: value for key, value in marks.items() if found.get(key) != value}


def _patch(service: Json, spec: Json, marks: Mapping[str, str | None], around: Around) -> Patch:
    annotations = dict(_changes(service, marks))
    if around.epoch and marks.get(HOLDER) is not None:
        annotations[EPOCH] = around.epoch
    metadata: dict[str, object] = {
        "resourceVersion": at(service, "metadata", "resourceVersion"),
        "uid": at(service, "metadata", "uid"),
    }
    if annotations:
        metadata["annotations"] = annotations
    body: dict[str, object] = {"metadata": metadata}
    if spec:
        body["spec"] = spec
    return Patch(text(service, "metadata", "name"), body)
