"""What the API server makes of a Pod, as far as no kubelet is needed to see it."""

from __future__ import annotations

from sandbox.standin import naming
from sandbox.standin.resources import Object
from sandbox.standin.status import Cause

TERMINAL = ("Succeeded", "Failed")
GRACE_SECONDS = 30
# the only parts of a Pod's spec that an update may change
_MUTABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds")
_FROZEN_WORDS = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def default(pod: Object) -> None:
    """Fill in what was left out. Under hostNetwork a declared containerPort becomes a hostPort."""
    spec = pod.setdefault("spec", {})
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", GRACE_SECONDS)
    spec.setdefault("serviceAccountName", "default")
    for container in spec.get("containers", []):
        for port in container.get("ports", []):
            port.setdefault("protocol", "TCP")
            if spec.get("hostNetwork") and port.get("containerPort"):
                port.setdefault("hostPort", port["containerPort"])
    pod.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})


def validate(pod: Object) -> list[Cause]:
    """Return what is wrong with a new Pod."""
    containers: list[Object] = pod["spec"].get("containers", [])
    causes = [] if containers else [Cause.required("spec.containers")]
    for index, container in enumerate(containers):
        field = f"spec.containers[{index}]"
        causes += (
            naming.label(f"{field}.name", container["name"])
            if container.get("name")
            else [Cause.required(f"{field}.name")]
        )
        if not container.get("image"):
            causes.append(Cause.required(f"{field}.image"))
        for place, port in enumerate(container.get("ports", [])):
            causes += _port(f"{field}.ports[{place}]", port)
    return causes


def validate_update(new: Object, old: Object) -> list[Cause]:
    """Return what of a Pod may not change as it does: of its spec hardly anything may."""
    if _frozen(new["spec"]) == _frozen(old["spec"]):
        return []
    return [Cause.forbidden("spec", _FROZEN_WORDS)]


def grace(pod: Object, asked: int | None) -> int:
    """Return how long a deleted Pod stays, in seconds: 0 when no kubelet has it, or nothing in it runs."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in TERMINAL:
        return 0
    seconds: int = pod["spec"]["terminationGracePeriodSeconds"] if asked is None else asked
    return seconds


def _port(field: str, port: Object) -> list[Cause]:
    number = port.get("containerPort")
    causes = (
        naming.port_number(f"{field}.containerPort", number)
        if number
        else [Cause.required(f"{field}.containerPort")]
    )
    return causes + (naming.port_name(f"{field}.name", port["name"]) if port.get("name") else [])


def _frozen(spec: Object) -> Object:
    kept = {key: value for key, value in spec.items() if key not in _MUTABLE}
    for kind in ("containers", "initContainers"):
        if kind in kept:
            kept[kind] = [{**container, "image": ""} for container in kept[kind]]
    return kept
