"""What listens, what each listener is taken for and why, and what follows: the answer of `discover`."""

from __future__ import annotations

from ..decide import identify
from ..model import Listener, Serve, World
from ..settings import Settings


def listing(world: World, settings: Settings, ours: frozenset[int] = frozenset()) -> dict[str, object]:
    """The World as a JSON object; `ours` are the inodes of the agent's own listeners."""
    listeners = sorted(world.listeners.values(), key=lambda one: (one.port, one.address))
    return {
        "degraded": world.degraded,
        "listeners": [_entry(listener, world, settings, ours) for listener in listeners],
        "publish": _wanted(world),
    }


def _entry(listener: Listener, world: World, settings: Settings, ours: frozenset[int]) -> dict[str, object]:
    taken, why = _taken(listener, world, settings, ours)
    return {
        "port": listener.port,
        "address": listener.address,
        "uid": listener.uid,
        "backlog": listener.backlog,
        "taken": taken,
        "why": why,
    }


def _taken(listener: Listener, world: World, settings: Settings, ours: frozenset[int]) -> tuple[str, str]:
    if listener.inode in ours:
        return "agent", "this agent's own"
    proven = next((ui for ui in world.proven if ui.listener.inode == listener.inode), None)
    if proven is not None:
        return "ours", f"this driver's UI ({proven.scheme.value}), proven by {proven.proof.value}"
    if listener.inode in world.stopping:
        return "stopping", "its driver said that it closes this UI"
    known = world.verdicts.get(listener.inode)
    if known is not None:
        return known[1].taken.value, known[1].detail
    if identify.possible(listener, settings, degraded=world.degraded):
        return "possible", "looks like a Spark UI, not asked yet"
    return "passed-over", _why_not(listener, world, settings)


def _why_not(listener: Listener, world: World, settings: Settings) -> str:
    """The first thing that speaks against it; only ever asked where `identify.possible` said no."""
    if listener.uid != settings.driver_uid:
        return f"its uid is {listener.uid}, the driver's is {settings.driver_uid} (SPARK_UI_AGENT_DRIVER_UID)"
    if listener.loopback:
        return "listens on loopback only, where no Service leads"
    if world.degraded or listener.backlog is None:
        return "not one of Spark's usual ports, and the kernel does not tell listen backlogs here"
    if not 1 <= listener.backlog <= identify.BACKLOG_MAX:
        return f"its listen backlog is {listener.backlog}, a Spark UI's is 1 to {identify.BACKLOG_MAX}"
    return "a port known for something else, or an address that is not this Pod's"


def _wanted(world: World) -> dict[str, object]:
    desired = world.intent.desired
    if isinstance(desired, Serve):
        return {
            "port": desired.port,
            "scheme": desired.scheme.value,
            "application": desired.application,
            "proof": desired.proof.value,
        }
    return {
        "port": None,
        "reason": desired.why.code,
        "found": desired.why.found,
        "remedy": desired.why.remedy,
    }
