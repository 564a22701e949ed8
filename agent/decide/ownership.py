"""Whose a Service is: may this agent take it, does it lead to this Pod, which labels select this Pod alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..model import Trouble
from ..settings import Settings
from .tree import Json, items, strings, text

PREFIX = "spark-ui-agent/"
PARKED = PREFIX + "parked"
PORT, SCHEME, APPLICATION, HOLDER, STATE, EPOCH, CREATED_BY = (
    PREFIX + name for name in ("port", "scheme", "application", "holder", "state", "epoch", "created-by")
)
MARKS = (PORT, SCHEME, APPLICATION, HOLDER, STATE, EPOCH)
APP_SELECTOR = "spark-app-selector"
STATEFULSET_POD = "statefulset.kubernetes.io/pod-name"
OPERATOR_APP = "sparkoperator.k8s.io/app-name"


@dataclass(frozen=True, slots=True)
class Around:
    """What else the step depends on, read by the reconciler.

    `pod` is our own Pod as the API shows it, None when it may not be read. `holder_gone` tells whether the Pod
    named by a foreign holder mark is known to be over, `owner_gone` the same of a foreign Pod that alone owns the
    Service. `epoch` is a fresh text when a
    write in flight must be fenced off, else "". `exposed` is True when the slices were seen to hold this Pod, `empty` when
    they were seen not to since the last write.
    """

    pod: Json | None = None
    holder_gone: bool = False
    owner_gone: bool = False
    epoch: str = ""
    exposed: bool = False
    empty: bool = False


def selector(settings: Settings, pod: Json | None) -> dict[str, str] | Trouble:
    """The labels that select this Pod alone: the user's, else Spark's, else the StatefulSet's.

    They must be a subset of the Pod's live labels, where these can be read.
    """
    labels = strings(pod, "metadata", "labels") if pod is not None else None
    wanted = dict(settings.selector)
    if not wanted and (labels is None or APP_SELECTOR in labels) and settings.identity.application:
        wanted = {APP_SELECTOR: settings.identity.application, "spark-role": "driver"}
    if not wanted and labels is not None and STATEFULSET_POD in labels:
        wanted = {STATEFULSET_POD: labels[STATEFULSET_POD]}
    if not wanted:
        return Trouble(
            "selector",
            "this Pod has no label that selects it alone",
            "give it one of its own and name it in SPARK_UI_AGENT_SELECTOR",
        )
    if labels is not None and not wanted.items() <= labels.items():
        missing = ",".join(f"{key}={value}" for key, value in wanted.items() if labels.get(key) != value)
        return Trouble(
            "selector",
            f"this Pod's labels do not have {missing}",
            "correct SPARK_UI_AGENT_SELECTOR or the Pod's labels",
        )
    return wanted


def holder(service: Json) -> tuple[str, str] | None:
    """Pod name and uid of the agent that last wrote to the Service, if one did."""
    pod, slash, uid = text(service, "metadata", "annotations", HOLDER).partition("/")
    return (pod, uid) if slash else None


def pod_owner(service: Json) -> tuple[str, str] | None:
    """Pod name and uid of the one owner of the Service, if that is a Pod: with it, the Service goes."""
    owners = items(service, "metadata", "ownerReferences")
    if len(owners) != 1 or (text(owners[0], "apiVersion"), text(owners[0], "kind")) != ("v1", "Pod"):
        return None
    return text(owners[0], "name"), text(owners[0], "uid")


def pod_over(pod: Json | None, uid: str) -> bool:
    """True when the Pod that had `uid` is gone: absent, another one by now, or Succeeded or Failed."""
    if pod is None:
        return True
    return text(pod, "metadata", "uid") != uid or text(pod, "status", "phase") in ("Succeeded", "Failed")


def routes_here(service: Json, pod: Json | None, own: Mapping[str, str]) -> bool:
    """True when the Service's selector matches this Pod (by its live labels, else by those it is known to have)."""
    found = strings(service, "spec", "selector")
    labels = strings(pod, "metadata", "labels") if pod is not None else own
    return bool(found) and found.items() <= labels.items()


def unusable(service: Json, settings: Settings) -> Trouble | None:
    kind = text(service, "spec", "type")
    if kind == "ExternalName":
        return Trouble(
            "service", "the Service is of type ExternalName, which has no endpoints", _OTHER_SERVICE
        )
    if text(service, "spec", "clusterIP") == "None":
        return Trouble("service", "the Service is headless: no proxy applies its targetPort", _OTHER_SERVICE)
    if entry(service, settings) is None:
        names = ", ".join(
            f"{text(port, 'name') or port.get('port')}/{text(port, 'protocol') or 'TCP'}"
            for port in items(service, "spec", "ports")
        )
        return Trouble(
            "port",
            f"none of the Service's ports ({names}) is the UI's",
            f"name the entry {settings.port_name}, or name another one in SPARK_UI_AGENT_PORT_NAME",
        )
    return None


_OTHER_SERVICE = "name an ordinary Service in SPARK_UI_AGENT_SERVICE"


def entry(service: Json, settings: Settings) -> int | None:
    """Index of the ports entry that is the UI's: by name, else the only one, else by number."""
    ports = [
        (index, port)
        for index, port in enumerate(items(service, "spec", "ports"))
        if text(port, "protocol") in ("", "TCP")
    ]
    by_name = [index for index, port in ports if text(port, "name") == settings.port_name]
    if by_name:
        return by_name[0]
    if len(ports) == 1:
        return ports[0][0]
    by_number = [index for index, port in ports if port.get("port") == settings.expose]
    return by_number[0] if by_number else None


def target(service: Json, settings: Settings) -> object:
    """The targetPort of the UI's entry, a number or a name; None without such an entry."""
    ours = entry(service, settings)
    return None if ours is None else items(service, "spec", "ports")[ours].get("targetPort")


def others(service: Json, settings: Settings) -> frozenset[str]:
    """Names of the ports entries that are not the UI's; an EndpointSlice names its ports as the Service does."""
    ours = entry(service, settings)
    ports = enumerate(items(service, "spec", "ports"))
    return frozenset(text(port, "name") for index, port in ports if index != ours)


def not_ours(
    service: Json, settings: Settings, around: Around, *, here: bool, marked: bool
) -> Trouble | None:
    """Why the Service may not be taken, or None."""
    name = text(service, "metadata", "name")
    found = strings(service, "spec", "selector")
    other = found.get(APP_SELECTOR)
    if other and other != settings.identity.application and not here and not _left(service, around):
        return Trouble(
            "foreign", f"Service {name} selects application {other}", "give each driver a Service of its own"
        )
    if marked or here:
        return _held(service, around, marked=marked)
    if text(service, "metadata", "deletionTimestamp"):
        return Trouble(
            "service", f"Service {name} is being deleted", "none needed: it is made anew once it is gone"
        )
    held = _held(service, around, marked=marked)
    if held is not None:
        return held
    idle = not found or set(found) == {PARKED}
    mine = (
        text(service, "metadata", "annotations", APPLICATION) == settings.identity.application != ""
        or found.get(PARKED) == settings.identity.uid
    )
    if settings.adopt == "any" or (idle and mine):
        return None
    shown = ",".join(f"{key}={value}" for key, value in sorted(found.items())) or "nothing"
    return Trouble(
        "adopt",
        f"Service {name} selects {shown} and does not carry this driver's mark",
        "let its selector match this Pod, or set SPARK_UI_AGENT_ADOPT=any, or name another in SPARK_UI_AGENT_SERVICE",
    )


def _left(service: Json, around: Around) -> bool:
    """True when the application that the Service selects is the one that its holder, known to be over, served.

    An unclean end leaves it so. What somebody else made it select since then is not the holder's.
    """
    selected = strings(service, "spec", "selector").get(APP_SELECTOR)
    return around.holder_gone and text(service, "metadata", "annotations", APPLICATION) == selected


def _held(service: Json, around: Around, *, marked: bool) -> Trouble | None:
    holds = holder(service)
    if holds is None or marked or around.holder_gone:
        return None
    return Trouble(
        "holder",
        f"Service {text(service, 'metadata', 'name')} is held by Pod {holds[0]} ({holds[1]}), not known to be over",
        "give each driver a Service of its own; without the right to get Pods the agent can't see that one has ended",
    )
