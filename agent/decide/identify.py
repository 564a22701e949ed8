"""Which listeners may be the driver's UI, in which order; `judge` says what an answer makes of one.

A stranger's question can hurt: PySpark's accumulator server hangs the job after one silent connection, Spark's RPC
and block manager print a stack trace, a Java debugger prints a line. So a candidate has to look like Spark's
web server (Jetty) before it is asked, and is asked no more once its answer is final.
"""

from __future__ import annotations

import ipaddress

from ..model import HookState, Listener, Proof, Question, Scheme, Taken, World
from ..settings import Settings
from .answers import judge

__all__ = ["BACKLOG_MAX", "FINAL", "candidates", "hidden", "judge", "possible", "usual"]

BACKLOG_MAX = 16  # Spark asks Jetty for min(acceptors, 8); its RPC has 4096, py4j 50
FINAL = frozenset({Taken.OURS, Taken.FOREIGN, Taken.MANY, Taken.NOT_SPARK, Taken.REDIRECTOR})

# Spark's defaults for driver RPC, block manager and Connect, the usual debugger port, our own health listener.
_KNOWN_OTHERS = frozenset({7078, 7079, 15002, 5005, 4900})
_HISTORY_SERVER = frozenset({18080, 18480})  # on a shared node: plain and TLS
_USUAL = frozenset({*range(4040, 4057), *range(4440, 4457)})  # spark.port.maxRetries 16; TLS 400 higher


def usual(port: int) -> bool:
    """True for the ports that Spark takes when it is not told otherwise."""
    return port in _USUAL


def candidates(world: World, settings: Settings, ours: frozenset[int] = frozenset()) -> list[Question]:
    """The questions worth asking now, best first; `ours` are the inodes of the agent's own listeners.

    With a connected log hook the port is known; on a shared network it is confirmed all the same. Where the hook
    has told of no UI, one is looked for: `setLogLevel` may have silenced it since.
    """
    if world.ending is not None or world.ended is not None or world.misconfigured is not None:
        return []
    if world.hook is HookState.CONNECTED and world.proven:
        return _to_confirm(world, settings)
    able = [
        listener
        for listener in world.listeners.values()
        if listener.inode not in ours
        and listener.inode not in world.stopping
        and possible(listener, settings, degraded=world.degraded)
    ]
    able.sort(key=lambda one: (not usual(one.port), -one.inode))
    questions = [question for one in able if (question := _next(one, world, settings)) is not None]
    # What speaks TLS has answered half the question already.
    questions.sort(key=lambda question: not _speaks_tls(question, world))
    return questions


def possible(listener: Listener, settings: Settings, *, degraded: bool = False) -> bool:
    """True when it looks like a Spark UI that a Service can reach, as far as the socket table tells."""
    if listener.uid != settings.driver_uid or not _reachable(listener, settings.identity.ips):
        return False
    if listener.port in _KNOWN_OTHERS:
        return False
    if settings.identity.host_network and listener.port in _HISTORY_SERVER:
        return False
    if not _as_jetty(listener):
        return False
    return usual(listener.port) or not (degraded or listener.backlog is None)


def hidden(listener: Listener, settings: Settings) -> bool:
    """True when it looks like a Spark UI that listens where no Service leads (SPARK_LOCAL_IP=127.0.0.1)."""
    own = listener.uid == settings.driver_uid
    return own and listener.loopback and usual(listener.port) and _as_jetty(listener)


def _as_jetty(listener: Listener) -> bool:
    return listener.backlog is None or 1 <= listener.backlog <= BACKLOG_MAX


def _to_confirm(world: World, settings: Settings) -> list[Question]:
    if not settings.identity.host_network:
        return []
    return [
        Question(ui.listener, ui.scheme)
        for ui in reversed(world.proven)
        if ui.proof is Proof.HOOK and not _settled(ui.listener, world)
    ]


def _settled(listener: Listener, world: World) -> bool:
    """A filtered UI has nothing to add to what its hook said."""
    known = world.verdicts.get(listener.inode)
    return known is not None and (known[1].taken in FINAL or known[1].taken is Taken.FILTERED)


def _next(listener: Listener, world: World, settings: Settings) -> Question | None:
    known = world.verdicts.get(listener.inode)
    if known is None:
        # Never TLS first: Jetty warns in the driver's log when a plain port is sent a handshake.
        return Question(listener, Scheme.HTTP)
    scheme, verdict = known
    if verdict.taken in FINAL:
        return None
    if verdict.taken is Taken.SPEAKS_TLS:
        return None if settings.scheme == "http" else Question(listener, Scheme.HTTPS)
    return Question(listener, scheme)


def _speaks_tls(question: Question, world: World) -> bool:
    known = world.verdicts.get(question.listener.inode)
    return known is not None and known[1].taken is Taken.SPEAKS_TLS


def _reachable(listener: Listener, ips: frozenset[str]) -> bool:
    """True when one of the Pod's addresses leads to it; any outside address will do where those are unknown."""
    if listener.loopback:
        return False
    pod = {_address(text) for text in ips} - {None}
    own = ipaddress.ip_address(listener.address)
    if not pod:
        return True
    if not listener.wildcard:
        return own in pod
    versions = {address.version for address in pod if address is not None}
    return own.version in versions or (own.version == 6 and not listener.v6only)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
