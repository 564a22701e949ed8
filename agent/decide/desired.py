"""Facts -> World: what is known, and what follows from it for the Service.

Any source may withdraw; only proof may serve; after SIGTERM or drain nothing is served again. Every arbitration
between sources stands here and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace

from ..model import (
    Answered,
    Closed,
    Desired,
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
    Release,
    Scanned,
    Scheme,
    Serve,
    Taken,
    Trouble,
    Ui,
    World,
)
from ..settings import Settings
from .identify import hidden

# Reasons that wait for a person; every other reason to park passes by itself.
BLOCKING = frozenset(
    {"settings", "identity", "filtered", "ambiguous", "contexts", "scheme", "loopback", "uid"}
)

SEARCHING = Trouble("searching", "no UI of this driver is bound", "none needed: a UI is published once bound")
STOPPED = Trouble(
    "stopped", "the UI of this driver has closed", "none needed: a new UI is published once bound"
)


def initial() -> World:
    """Before any fact: nothing may be served."""
    return World(intent=Intent(0, Park(SEARCHING)))


def fold(world: World, fact: Fact, settings: Settings) -> World:
    """The World after `fact`, with a new Intent number when what is wanted has changed."""
    known = _learn(world, fact, settings)
    desired = _desired(known, settings)
    if desired != known.intent.desired:
        known = replace(known, intent=Intent(known.intent.generation + 1, desired))
    if isinstance(desired, Serve):
        known = replace(known, served=True, exposed=_exposed(known, desired))
    elif (
        known.exposed is not None
        and known.intent.gone(known.observed)
        # Proxies lag behind the slices, so the port is still to be guarded when it is freed a moment later: the
        # fact of its closing shows it as exposed, the one after that does not.
        and known.exposed.inode not in world.listeners
    ):
        known = replace(known, exposed=None)
    return known


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
        unclaimed = unclaimed or ([] if world.proven else _filtered(world))
        inodes = frozenset(unclaimed if len(unclaimed) == 1 else ())
    return replace(
        world,
        hook=HookState.CONNECTED,
        told=None,
        proven=tuple(ui for ui in world.proven if ui.listener.inode not in inodes),
        stopping=world.stopping | inodes,
    )


# --- what follows ---------------------------------------------------------------------------------------


def _desired(world: World, settings: Settings) -> Desired:
    if world.ended is not None:
        return Release(Trouble("driver-ended", world.ended, "none needed"))
    if world.misconfigured is not None:
        return Park(world.misconfigured)
    if world.ending is not None:
        return Park(Trouble("draining", world.ending, "none needed"))
    found = _choose(world, settings)
    if isinstance(found, Trouble):
        return Park(found)
    return Serve(found.listener.port, found.scheme, found.application, found.proof)


def _choose(world: World, settings: Settings) -> Ui | Trouble:
    """The one UI to serve, or why none."""
    live = _serving(world) or _by_socket(world, settings)
    if not live:
        return _why_none(world, settings)
    wanted = [ui for ui in live if settings.scheme in ("auto", ui.scheme)]
    if not wanted:
        return Trouble(
            "scheme",
            f"the UI serves {live[-1].scheme} on port {live[-1].listener.port}, "
            f"SPARK_UI_AGENT_SCHEME asks for {settings.scheme}",
            "set SPARK_UI_AGENT_SCHEME=auto",
        )
    hooked = [ui for ui in wanted if ui.proof is Proof.HOOK]
    if settings.identity.host_network and hooked:
        # On a shared node an application id can be another driver's too; the hook's secret can't.
        wanted = hooked
    elif settings.identity.host_network and len(wanted) > 1:
        ports = ", ".join(str(ui.listener.port) for ui in wanted)
        return Trouble(
            "ambiguous",
            f"several UIs on this node show application {wanted[0].application}: ports {ports}",
            "give each driver its own spark.app.id, or use the log hook",
        )
    if settings.contexts == "only" and len(wanted) > 1:
        ports = ", ".join(str(ui.listener.port) for ui in wanted)
        return Trouble(
            "contexts", f"several UIs: ports {ports}", "set SPARK_UI_AGENT_CONTEXTS=newest or first"
        )
    if all(ui.started for ui in wanted):
        wanted = sorted(wanted, key=lambda ui: ui.started)
    return wanted[0] if settings.contexts == "first" else wanted[-1]


def _serving(world: World) -> list[Ui]:
    """Proven UIs that a Service can reach, less the plain ports that a hook told beside a TLS port.

    With TLS on, those only redirect.
    """
    secure = {ui.pid for ui in world.proven if ui.proof is Proof.HOOK and ui.scheme is Scheme.HTTPS}
    return [
        ui
        for ui in world.proven
        if not ui.listener.loopback
        and (ui.proof is not Proof.HOOK or ui.scheme is Scheme.HTTPS or ui.pid not in secure)
    ]


def _filtered(world: World) -> list[int]:
    """Inodes of the UIs that answer 401 or 403, less those whose JVM said "stopping"."""
    return [
        inode
        for inode, (_, verdict) in world.verdicts.items()
        if verdict.taken is Taken.FILTERED and inode not in world.stopping
    ]


def _by_socket(world: World, settings: Settings) -> list[Ui]:
    """The opt-in proof: one filtered UI, of the driver's uid, in a network namespace of its own."""
    filtered = _filtered(world)
    if settings.filtered_ui != "socket" or settings.identity.host_network or len(filtered) != 1:
        return []
    scheme, _ = world.verdicts[filtered[0]]
    return [Ui(world.listeners[filtered[0]], scheme, settings.identity.application, Proof.SOCKET)]


def _why_none(world: World, settings: Settings) -> Trouble:
    found = {verdict.taken: (inode, verdict) for inode, (_, verdict) in world.verdicts.items()}
    if Taken.FILTERED in found:
        port = world.listeners[found[Taken.FILTERED][0]].port
        remedy = "turn the log hook on (SPARK_UI_AGENT_HOOK)"
        if not settings.identity.host_network:
            remedy += ", or set SPARK_UI_AGENT_FILTERED_UI=socket"
        return Trouble(
            "filtered", f"the UI on port {port} answers 401 or 403, so it can't be told whose it is", remedy
        )
    if not settings.identity.application and not settings.hook_wanted:
        return Trouble(
            "identity",
            "SPARK_APPLICATION_ID is empty and the log hook is off, so no UI can be proven to be this driver's",
            "set SPARK_APPLICATION_ID from the label spark-app-selector, or turn the log hook on (SPARK_UI_AGENT_HOOK)",
        )
    if Taken.STARTING in found:
        port = world.listeners[found[Taken.STARTING][0]].port
        return Trouble("starting", f"port {port} answers, its application does not yet", "none needed")
    if Taken.FOREIGN in found and not settings.identity.host_network:
        inode, verdict = found[Taken.FOREIGN]
        return Trouble(
            "identity",
            f"the UI on port {world.listeners[inode].port} shows application {verdict.application}, "
            f"this Pod's is {settings.identity.application}",
            "set spark.app.id to the Pod's application id, or turn the log hook on (SPARK_UI_AGENT_HOOK)",
        )
    loopback = _hidden(world, settings)
    if loopback is not None:
        return Trouble(
            "loopback",
            f"the UI on port {loopback.port} listens on {loopback.address} only, where no Service leads",
            "let the driver bind its Pod's address: unset SPARK_LOCAL_IP in its container",
        )
    if world.told is not None:
        return Trouble(
            "uid",
            f"the driver says that its UI is on port {world.told}, where no socket of uid {settings.driver_uid} listens",
            "name the driver's user id in SPARK_UI_AGENT_DRIVER_UID",
        )
    return STOPPED if world.served else SEARCHING


def _hidden(world: World, settings: Settings) -> Listener | None:
    """The driver's UI on the loopback: told by the hook, or in the Pod's own network by one of Spark's usual ports.

    A loopback listener is never asked. On a shared network it may be any driver's.
    """
    told = [ui.listener for ui in world.proven if ui.listener.loopback]
    if told or settings.identity.host_network:
        return told[-1] if told else None
    return next((one for one in world.listeners.values() if hidden(one, settings)), None)


def _exposed(world: World, desired: Serve) -> Listener | None:
    """What the Service may route to: the former listener until a write for the new one is known to stand."""
    former, observed = world.exposed, world.observed
    written = (
        observed is not None
        and observed.generation >= world.intent.generation
        and observed.routed
        and observed.blocked is None
    )
    if former is not None and former.port != desired.port and not written:
        return former
    return next((ui.listener for ui in world.proven if ui.listener.port == desired.port), former)


def guarded(world: World, settings: Settings) -> Listener | None:
    """The listener whose freed port must not fall to another driver while the Service may still route to it."""
    if not settings.identity.host_network or settings.guard == "off" or world.exposed is None:
        return None
    return None if world.exposed.inode in world.listeners else world.exposed


def withdrawn(world: World, pid: int) -> bool:
    """True when it is known that nothing routes to a UI of that JVM: what its stop() waits for."""
    observed = world.observed
    if not isinstance(world.intent.desired, Serve):
        return world.intent.gone(observed)
    current = (
        observed is not None and observed.generation >= world.intent.generation and observed.blocked is None
    )
    return current and not any(
        ui.pid == pid and ui.listener.port == world.intent.desired.port for ui in world.proven
    )
