"""The values that flow through the agent: facts in, one Desired out, one Observed back.

Nothing here does I/O or reads a clock. Sources *tell* facts, `agent.decide.desired` folds them into one
`Intent`, the reconciler makes the Service equal to it and answers with one `Observed`.
"""

from __future__ import annotations

import enum
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field


class Scheme(enum.StrEnum):
    """What a client has to speak to the published port."""

    HTTP = "http"
    HTTPS = "https"


class Proof(enum.StrEnum):
    """Why a port is held to be this driver's UI, strongest first."""

    HOOK = "hook"  # the driver's own logging said so, with the secret that only this Pod knows
    REST = "rest"  # /api/v1/applications lists exactly one application, and it is ours
    SOCKET = "socket"  # opt-in: the one possible listener of the driver's uid


class State(enum.StrEnum):
    """What the agent is doing, computed from Intent and Observed and never stored."""

    WAITING = "waiting"  # for a UI, or for the Service to be written
    PUBLISHED = "published"
    PARKED = "parked"  # nothing routes here; a new UI is published again
    BLOCKED = "blocked"  # someone has to act
    DRAINING = "draining"  # withdrawn, endpoints may still lead here
    DONE = "done"  # nothing routes here, and nothing is published again


class HookState(enum.StrEnum):
    """Whether the driver's logging reaches the agent."""

    CONNECTED = "connected"  # a post with the right secret has arrived
    WAITING = "waiting"  # the files stand, nothing heard yet
    ABSENT = "absent"  # a UI was found although the hook said nothing: a -D of the user's beats the env
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Listener:
    """One TCP socket in state LISTEN, as the kernel reports it.

    `address` is the text form, IPv4-mapped IPv6 shown as IPv4 (Java binds dual-stack, so `::` is the rule).
    `inode` is the socket's own number: a new socket on the same port has another one.
    `backlog` is the listen backlog, or None where the source does not know it (/proc).
    `v6only`: an IPv6 socket that takes no IPv4 connections (IPV6_V6ONLY); False where the source does not know it.
    """

    port: int
    address: str
    uid: int
    inode: int
    backlog: int | None = None
    v6only: bool = False

    @property
    def loopback(self) -> bool:
        """True when only this network namespace can reach it."""
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def wildcard(self) -> bool:
        """True when bound to every address."""
        return ipaddress.ip_address(self.address).is_unspecified


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something is not as the user wants it: a stable code, what was found, what to do about it."""

    code: str
    found: str
    remedy: str


# --- errors of the Kubernetes API, by what the caller can do about them ----------------------------------


class ApiError(Exception):
    """An API call that did not succeed. `status` is 0 where no answer came.

    The message never holds a token nor a whole object (a 422 of kube-apiserver quotes the object).
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else f"{reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after  # seconds, from the header


class NotFoundError(ApiError):
    """404."""


class ConflictError(ApiError):
    """409 Conflict: what was read is stale; read again, decide again."""


class AlreadyExistsError(ApiError):
    """409 AlreadyExists on POST."""


class ForbiddenError(ApiError):
    """403: a verb is missing, a quota is full, or an admission plugin said no."""


class UnauthorizedError(ApiError):
    """401, also after the token was read again."""


class InvalidError(ApiError):
    """400, 415 or 422: sending the same again is of no use."""


class ThrottledError(ApiError):
    """429, or 503 with Retry-After."""


class ServerError(ApiError):
    """Any other 5xx."""


class UnreachableError(ApiError):
    """No whole answer: refused, reset, time-out, bad certificate. A write may or may not have happened."""


# --- what a listener turned out to be -------------------------------------------------------------------


class Taken(enum.StrEnum):
    """What a listener is taken for, after an answer."""

    OURS = "ours"
    REDIRECTOR = "redirector"  # plain port that only points at the TLS one
    SPEAKS_TLS = "speaks-tls"  # answered plain HTTP with a TLS alert: ask again over TLS
    STARTING = "starting"  # Spark's "starting up" page, a 404 before the REST servlet, an empty list
    FOREIGN = "foreign"  # a Spark UI with another application
    MANY = "many"  # several applications: a History Server
    FILTERED = "filtered"  # 401 or 403 for everything
    SILENT = "silent"  # accepted or not, no answer in time: paused or busy
    NOT_SPARK = "not-spark"  # anything else
    CLOSED = "closed"  # refused: the listener went between scan and question


class Said(enum.StrEnum):
    """The kind of answer that a probe met."""

    HTTP = "http"  # a whole HTTP head, and a body as far as bounded
    TLS_ALERT = "tls-alert"  # plain HTTP was answered with a TLS record
    TLS_FAILED = "tls-failed"  # the handshake failed: no TLS there
    NOT_HTTP = "not-http"  # bytes that are no HTTP/1
    EOF = "eof"  # closed without a byte
    RESET = "reset"
    REFUSED = "refused"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of one candidate to one question. Header values are as sent, at most the bounded part."""

    said: Said
    status: int = 0
    content_type: str = ""
    location: str = ""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Question:
    """One candidate and the scheme to ask it in."""

    listener: Listener
    scheme: Scheme


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one answer says about one listener; `detail` is for people (`discover`, the log)."""

    taken: Taken
    detail: str
    application: str | None = None
    started: int = 0  # startTimeEpoch of the application's attempt in ms, 0 when not told


# --- facts ----------------------------------------------------------------------------------------------


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
    of the Service leads to this Pod: unknown counts as routed. `blocked` says why the Intent could not be met.
    """

    generation: int
    routed: bool
    blocked: Trouble | None = None
    service: str = ""
    released: bool = False


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


# --- what is told ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Status:
    """What /status, `status` and the log say; computed from the World."""

    state: State
    reason: str  # code of the Trouble or "" when published
    found: str  # for people
    remedy: str
    port: int | None
    scheme: str | None
    application: str | None
    proof: str | None
    hook: str
    service: str


# --- what is wanted -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Serve:
    """The Service selects this Pod with this target port."""

    port: int
    scheme: Scheme
    application: str
    proof: Proof


@dataclass(frozen=True, slots=True)
class Park:
    """The Service selects nothing."""

    why: Trouble


@dataclass(frozen=True, slots=True)
class Release:
    """As Park, then what we created is deleted and our marks are taken off what we adopted."""

    why: Trouble


Desired = Serve | Park | Release


@dataclass(frozen=True, slots=True)
class Intent:
    """A Desired and its number; a new number each time it changes."""

    generation: int
    desired: Desired

    def gone(self, observed: Observed | None) -> bool:
        """True when it is known that nothing routes here any more: the meaning of "gone" everywhere."""
        return (
            not isinstance(self.desired, Serve)
            and observed is not None
            and observed.generation >= self.generation
            and not observed.routed
        )


@dataclass(frozen=True, slots=True)
class Ui:
    """A UI that is proven ours, as long as its listener stays."""

    listener: Listener
    scheme: Scheme
    application: str
    proof: Proof
    pid: int | None = None  # of the JVM in its own pid namespace, when the hook told it
    started: int = 0  # ms since the epoch, 0 when not known


@dataclass(frozen=True, slots=True)
class World:
    """All that is known, folded from the facts in their order."""

    intent: Intent
    listeners: Mapping[int, Listener] = field(default_factory=dict)  # by inode
    proven: tuple[Ui, ...] = ()  # in order of proof
    verdicts: Mapping[int, tuple[Scheme, Verdict]] = field(default_factory=dict)  # by inode
    degraded: bool = False
    scanned: bool = False  # the socket table was read at least once
    served: bool = False  # something was served before
    told: int | None = None  # port that the hook told of, where no socket of the driver's uid listens
    stopping: frozenset[int] = (
        frozenset()
    )  # inodes whose JVM said "stopping": no proof counts for them any more
    exposed: Listener | None = None  # what the Service may still route to
    hook: HookState = HookState.OFF
    ending: str | None = None  # why nothing is served again
    leaving: bool = False  # the agent ends once nothing leads here
    ended: str | None = None  # why the driver is known to be over
    misconfigured: Trouble | None = None
    observed: Observed | None = None
