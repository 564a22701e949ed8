"""World -> Desired: which of the UIs that are known is served, or why none.

Every arbitration between UIs stands here and nowhere else.
"""

from __future__ import annotations

from ..model import Desired, Listener, Park, Proof, Release, Scheme, Serve, Taken, Trouble, Ui, World
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


def conclude(world: World, settings: Settings) -> Desired:
    """What follows for the Service from all that is known."""
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


def filtered(world: World) -> list[int]:
    """Inodes of the UIs that answer 401 or 403, less those whose JVM said "stopping"."""
    return [
        inode
        for inode, (_, verdict) in world.verdicts.items()
        if verdict.taken is Taken.FILTERED and inode not in world.stopping
    ]


def _by_socket(world: World, settings: Settings) -> list[Ui]:
    """The opt-in proof: one filtered UI, of the driver's uid, in a network namespace of its own."""
    inodes = filtered(world)
    if settings.filtered_ui != "socket" or settings.identity.host_network or len(inodes) != 1:
        return []
    scheme, _ = world.verdicts[inodes[0]]
    return [Ui(world.listeners[inodes[0]], scheme, settings.identity.application, Proof.SOCKET)]


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
