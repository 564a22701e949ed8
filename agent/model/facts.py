"""What the sources tell, one value for each kind of news."""

from __future__ import annotations

from dataclasses import dataclass

from .listeners import Listener, Scheme, Verdict


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something is not as the user wants it: a stable code, what was found, what to do about it."""

    code: str
    found: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Scanned:
    """The listening sockets of the network namespace, whole. `degraded`: from /proc, without backlogs."""

    listeners: frozenset[Listener]
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """The kernel destroyed a listening socket. `inode` may be 0 (the kernel has dropped it by then)."""

    port: int
    inode: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """A listener was asked and answered."""

    listener: Listener
    scheme: Scheme
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class HookBound:
    """The JVM `pid` logged that its UI bound `port`; `listener` is what listens there right now."""

    pid: int
    port: int
    scheme: Scheme
    listener: Listener | None


@dataclass(frozen=True, slots=True)
class HookStopping:
    """The JVM `pid` is about to close its UI and waits for our answer."""

    pid: int


@dataclass(frozen=True, slots=True)
class HookReady:
    """The hook's files stand and its receiver listens (or, with `on` False, the hook is off)."""

    on: bool = True


@dataclass(frozen=True, slots=True)
class Draining:
    """SIGTERM, SIGINT or `drain`: park and serve nothing again. `leave`: and end once that is done."""

    why: str
    leave: bool = False


@dataclass(frozen=True, slots=True)
class DriverEnded:
    """The driver container has provenly ended, or our Pod is being deleted: nothing comes after it."""

    why: str


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """The settings can't be used: the agent stays up, harmless, and says so."""

    trouble: Trouble


@dataclass(frozen=True, slots=True)
class Observed:
    """What the reconciler last knew of the Service.

    `generation` is that of the Intent it worked on; `routed` is False only when it is known that no endpoint
    of the Service leads to this Pod: unknown counts as routed. `elsewhere` is True while one may lead to this Pod at
    another port than the one to serve: the Service is written, its endpoints lag behind. `blocked` says why the Intent
    could not be met.
    """

    generation: int
    routed: bool
    blocked: Trouble | None = None
    service: str = ""
    released: bool = False
    elsewhere: bool = False


Fact = (
    Scanned
    | Closed
    | Answered
    | HookBound
    | HookStopping
    | HookReady
    | Draining
    | DriverEnded
    | Misconfigured
    | Observed
)
