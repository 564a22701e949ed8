"""Our own Pod, as the API server shows it -> has the driver ended; and how long our own end may take."""

from __future__ import annotations

from .. import times
from ..model import World
from ..settings import Settings
from .tree import Json, at, items, mapping, text


def ended(pod: Json, settings: Settings) -> str | None:
    """Why no UI of this driver comes any more, or None while one may.

    A driver that has not started yet has not ended. One that kubelet starts again (restartPolicy Always, or OnFailure
    after a failure) has not ended either.
    """
    uid = text(pod, "metadata", "uid")
    if uid and settings.identity.uid and uid != settings.identity.uid:
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


def driver_listens(world: World, settings: Settings, ours: frozenset[int]) -> bool:
    """True while a socket says that the driver lives; `ours` are the inodes of the agent's own listeners.

    Under hostNetwork the drivers of a node mostly share one uid, so only a proven UI says so.
    """
    if settings.identity.host_network:
        return bool(world.proven)
    uid = settings.driver_uid
    return any(one.uid == uid and inode not in ours for inode, one in world.listeners.items())


def leaving(world: World, settings: Settings) -> bool:
    """True when the agent is to end: it was told to, or in `plain` mode the driver has ended."""
    return world.leaving or (settings.mode == "plain" and world.ended is not None)


def over(world: World, settings: Settings) -> bool:
    """True when, besides, it has nothing left to keep: the Service leads nowhere."""
    return leaving(world, settings) and world.intent.gone(world.observed)


def settled(world: World) -> bool:
    """True when the Service is what the present Intent wants it to be, or can't be made so by us."""
    intent, observed = world.intent, world.observed
    if observed is None or observed.generation < intent.generation:
        return False
    # what is refused is not ours to see to; an API server that is away may come back in time
    refused = observed.blocked is not None and observed.blocked.code != "api"
    return refused or intent.gone(observed) or intent.reached(observed)


def finished(world: World, settings: Settings, ours: frozenset[int]) -> bool:
    """True when, besides that, it is known whether to release: we have, or can't, or the driver lives on and will need it."""
    observed = world.observed
    released = world.ended is not None and observed is not None and observed.released
    barred = observed is not None and observed.blocked is not None
    return over(world, settings) and (released or barred or driver_listens(world, settings, ours))


def patience(now: float, begun: float, *, published: bool) -> float:
    """Until when to wait for the endpoints to go, at an end that `begun`; all on one clock, in seconds.

    preStop and SIGTERM come one after the other and share the time: with the API server away each would else hold the Pod
    for all of it. Without anything ever `published` there is only a Service that somebody else leads here.
    """
    most = times.DRAIN_DEFAULT if published else times.END_LOOK
    return max(begun + most, now + times.FAREWELL)


def _state(pod: Json, container: str) -> dict[str, object] | None:
    for status in items(pod, "status", "containerStatuses"):
        if text(status, "name") == container:
            return mapping(status, "state")
    return None
