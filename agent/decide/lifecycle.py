"""Our own Pod, as the API server shows it -> has the driver ended."""

from __future__ import annotations

from ..settings import Settings
from .tree import Json, at, items, mapping, text


def ended(pod: Json, settings: Settings) -> str | None:
    """Why no UI of this driver comes any more, or None while one may.

    A driver that has not started yet has not ended. One that kubelet starts again (restartPolicy Always, or OnFailure
    after a failure) has not ended either.
    """
    uid = text(pod, "metadata", "uid")
    if uid and uid != settings.identity.uid:
        return "another Pod has our name"
    if text(pod, "metadata", "deletionTimestamp"):
        return "the Pod is being deleted"
    phase = text(pod, "status", "phase")
    if phase in ("Succeeded", "Failed"):
        return f"the Pod has {phase.lower()}"
    state = _state(pod, settings.driver_container)
    if state is None or "terminated" not in state:
        return None
    code = at(state, "terminated", "exitCode")
    policy = text(pod, "spec", "restartPolicy") or "Always"
    if policy == "Always" or (policy == "OnFailure" and code != 0):
        return None
    return f"container {settings.driver_container} has ended with exit code {code}"


def shows_driver(pod: Json, settings: Settings) -> bool:
    """False when the Pod has no container of the driver's name: then its end can't be read there."""
    names = [text(container, "name") for container in items(pod, "spec", "containers")]
    return settings.driver_container in names


def _state(pod: Json, container: str) -> dict[str, object] | None:
    for status in items(pod, "status", "containerStatuses"):
        if text(status, "name") == container:
            return mapping(status, "state")
    return None
