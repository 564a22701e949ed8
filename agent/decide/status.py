"""World -> what is told: State and Status, computed each time and never stored."""

from __future__ import annotations

from dataclasses import replace

from ..model import Park, Serve, State, Status, Trouble, World
from ..settings import Settings
from .choice import BLOCKING


def state(world: World) -> State:
    """What the agent is doing right now."""
    desired, observed = world.intent.desired, world.observed
    gone = world.intent.gone(observed)
    if world.ending is not None or world.ended is not None:
        return State.DONE if gone else State.DRAINING
    current = observed is not None and observed.generation >= world.intent.generation
    if (current and observed is not None and observed.blocked is not None) or (
        isinstance(desired, Park) and desired.why.code in BLOCKING
    ):
        return State.BLOCKED
    if isinstance(desired, Serve):
        return State.PUBLISHED if world.intent.reached(observed) else State.WAITING
    if not world.served:
        return State.WAITING
    return State.PARKED if gone else State.DRAINING


def status(world: World, settings: Settings) -> Status:
    """What /status says."""
    desired, observed = world.intent.desired, world.observed
    now = state(world)
    why: Trouble | None = None if isinstance(desired, Serve) else desired.why
    if (
        observed is not None
        and observed.blocked is not None
        and observed.generation >= world.intent.generation
    ):
        why = observed.blocked
    serve = desired if isinstance(desired, Serve) else None
    if serve is not None and now is State.WAITING:
        why = Trouble(
            "publishing", f"port {serve.port} is proven, the Service is being written", "none needed"
        )
        if observed is not None and observed.elsewhere and observed.generation >= world.intent.generation:
            why = replace(
                why,
                found=f"the Service is written for port {serve.port}, its endpoints still lead to the former port",
            )
    return Status(
        state=now,
        reason=why.code if why else "",
        found=why.found if why else "",
        remedy=why.remedy if why else "",
        port=serve.port if serve else None,
        scheme=serve.scheme.value if serve else None,
        application=(serve.application if serve else None) or settings.identity.application or None,
        proof=serve.proof.value if serve else None,
        hook=world.hook.value,
        service=observed.service if observed is not None and observed.service else settings.service,
    )
