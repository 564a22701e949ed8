"""Facts -> World: what is known, and with it the Intent that `choice` draws from it.

Any source may withdraw; only proof may serve; after SIGTERM or drain nothing is served again. What a fact of one
source does to what another has told stands here and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace

from ..model import (
    Answered,
    Closed,
    Draining,
    DriverEnded,
    Fact,
    HookBound,
    HookReady,
    HookState,
    HookStopping,
    Intent,
    Listener,
    Misconfigured,
    Observed,
    Park,
    Proof,
    Scanned,
    Serve,
    Taken,
    Ui,
    World,
)
from ..settings import Settings
from .choice import SEARCHING, conclude, filtered


def initial() -> World:
    """Before any fact: nothing may be served."""
    return World(intent=Intent(0, Park(SEARCHING)))


def fold(world: World, fact: Fact, settings: Settings) -> World:
    """The World after `fact`, with a new Intent number when what is wanted has changed."""
    known = _learn(world, fact, settings)
    desired = conclude(known, settings)
    if desired != known.intent.desired:
        known = replace(known, intent=Intent(known.intent.generation + 1, desired))
    if isinstance(desired, Serve):
        reached = known.intent.reached(known.observed)
        former = tuple(one for one in known.exposed if one.port != desired.port)
        serving = [ui.listener for ui in known.proven if ui.listener.port == desired.port]
        exposed = (*(_open(former, world) if reached else _bounded(former)), *serving[:1])
        known = replace(known, served=True, exposed=exposed)
    elif known.intent.gone(known.observed):
        known = replace(known, exposed=_open(known.exposed, world))
    return known


def _open(exposed: tuple[Listener, ...], before: World) -> tuple[Listener, ...]:
    """What of it listened before the last fact.

    Proxies lag behind the slices, so a port is still to be guarded when it is freed a moment after nothing routes to
    it: the fact of its closing shows it as exposed, the one after that does not.
    """
    return tuple(one for one in exposed if one.inode in before.listeners)


def _bounded(former: tuple[Listener, ...]) -> tuple[Listener, ...]:
    """The one that is known to have been routed to, and the last: each port that is kept is one less for the driver.

    Spark gives up, and its context with it, after spark.port.maxRetries (16) taken ports.
    """
    return former if len(former) < 2 else (former[0], former[-1])


def _learn(world: World, fact: Fact, settings: Settings) -> World:
    match fact:
        case Scanned():
            return _present(
                replace(world, scanned=True, degraded=fact.degraded),
                {item.inode: item for item in fact.listeners},
            )
        case Closed():
            left = {
                inode: item
                for inode, item in world.listeners.items()
                if item.port != fact.port or (fact.inode and inode != fact.inode)
            }
            return _present(world, left)
        case Answered():
            return _answered(world, fact, settings)
        case HookBound():
            return _bound(world, fact, settings)
        case HookStopping():
            return _stopping(world, fact.pid)
        case HookReady():
            if not fact.on or world.hook is not HookState.OFF:
                return world
            return replace(world, hook=HookState.WAITING)
        case Draining():
            return replace(world, ending=world.ending or fact.why, leaving=world.leaving or fact.leave)
        case DriverEnded():
            return replace(world, ended=world.ended or fact.why)
        case Misconfigured():
            return replace(world, misconfigured=fact.trouble)
        case Observed():
            if world.observed is not None and fact.generation < world.observed.generation:
                return world
            return replace(world, observed=fact)


def _present(world: World, listeners: dict[int, Listener]) -> World:
    """Only what still listens keeps its proof, its verdict and its mark: a new socket is a new inode."""
    return replace(
        world,
        listeners=listeners,
        proven=tuple(ui for ui in world.proven if ui.listener.inode in listeners),
        verdicts={inode: found for inode, found in world.verdicts.items() if inode in listeners},
        stopping=frozenset(inode for inode in world.stopping if inode in listeners),
    )


def _answered(world: World, fact: Answered, settings: Settings) -> World:
    inode = fact.listener.inode
    if inode not in world.listeners:
        return world
    world = replace(world, verdicts={**world.verdicts, inode: (fact.scheme, fact.verdict)})
    proven = {ui.listener.inode for ui in world.proven}
    taken = fact.verdict.taken
    if taken is Taken.OURS and inode not in proven and inode not in world.stopping:
        ui = Ui(
            listener=world.listeners[inode],
            scheme=fact.scheme,
            application=fact.verdict.application or settings.identity.application,
            proof=Proof.REST,
            started=fact.verdict.started,
        )
        hook = HookState.ABSENT if world.hook is HookState.WAITING else world.hook
        return replace(world, proven=(*world.proven, ui), hook=hook)
    if taken in (Taken.FOREIGN, Taken.MANY) and inode in proven and settings.identity.host_network:
        # The port was ours when the hook named it; on a shared network another driver may have it now.
        return replace(world, proven=tuple(ui for ui in world.proven if ui.listener.inode != inode))
    return world


def _bound(world: World, fact: HookBound, settings: Settings) -> World:
    world = replace(world, hook=HookState.CONNECTED)
    if fact.listener is None:
        return replace(world, told=fact.port)
    inode = fact.listener.inode
    ui = Ui(
        listener=fact.listener,
        scheme=fact.scheme,
        application=settings.identity.application,
        proof=Proof.HOOK,
        pid=fact.pid,
    )
    others = tuple(one for one in world.proven if one.listener.inode != inode)
    return replace(
        world,
        listeners={**world.listeners, inode: fact.listener},
        proven=(*others, ui),
        stopping=world.stopping - {inode},
        told=None,
    )


def _stopping(world: World, pid: int) -> World:
    """The UIs of that JVM lose their proof until their sockets are gone; those of other JVMs keep it."""
    inodes = frozenset(ui.listener.inode for ui in world.proven if ui.pid == pid)
    if not inodes:
        # A UI found by REST or by its socket has no pid. Where there is just one, it is the one that stops.
        unclaimed = [ui.listener.inode for ui in world.proven if ui.pid is None]
        unclaimed = unclaimed or ([] if world.proven else filtered(world))
        inodes = frozenset(unclaimed if len(unclaimed) == 1 else ())
    return replace(
        world,
        hook=HookState.CONNECTED,
        told=None,
        proven=tuple(ui for ui in world.proven if ui.listener.inode not in inodes),
        stopping=world.stopping | inodes,
    )


def guarded(world: World, settings: Settings) -> tuple[Listener, ...]:
    """The listeners whose freed ports must not fall to another driver while the Service may still route to them."""
    if not settings.identity.host_network or settings.guard == "off":
        return ()
    return tuple(one for one in world.exposed if one.inode not in world.listeners)


def withdrawn(world: World, pid: int) -> bool:
    """True when it is known that nothing routes to a UI of that JVM: what its stop() waits for."""
    observed = world.observed
    if observed is not None and observed.generation >= world.intent.generation and not observed.routed:
        return True  # also where another UI is to be served, and the Service is refused to us
    if not isinstance(world.intent.desired, Serve):
        return False
    return world.intent.reached(world.observed) and not any(
        # one that was found by REST may be any JVM's
        ui.pid in (pid, None) and ui.listener.port == world.intent.desired.port
        for ui in world.proven
    )
