"""What is known, folded from the facts; what is wanted of the Service; what people are told."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from .facts import Observed, Trouble
from .listeners import Listener, Scheme, Verdict


class Proof(enum.StrEnum):
    """Why a port is held to be this driver's UI, strongest first."""

    HOOK = "hook"  # the driver's own logging said so, with the secret that only this Pod knows
    REST = "rest"  # /api/v1/applications lists exactly one application, and it is ours
    SOCKET = "socket"  # opt-in: the one possible listener of the driver's uid


class HookState(enum.StrEnum):
    """Whether the driver's logging reaches the agent."""

    CONNECTED = "connected"  # a post with the right secret has arrived
    WAITING = "waiting"  # the files stand, nothing heard yet
    ABSENT = "absent"  # a UI was found although the hook said nothing: a -D of the user's beats the env
    OFF = "off"


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

    def reached(self, observed: Observed | None) -> bool:
        """True when the Service is known to lead to the port to serve, and no endpoint to another port of this Pod."""
        return (
            isinstance(self.desired, Serve)
            and observed is not None
            and observed.generation >= self.generation
            and observed.routed
            and not observed.elsewhere
            and observed.blocked is None
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
    stopping: frozenset[int] = frozenset()  # inodes whose JVM said "stopping": no proof counts any more
    exposed: tuple[Listener, ...] = ()  # what the Service may still route to, one for each port
    hook: HookState = HookState.OFF
    ending: str | None = None  # why nothing is served again
    leaving: bool = False  # the agent ends once nothing leads here
    ended: str | None = None  # why the driver is known to be over
    misconfigured: Trouble | None = None
    observed: Observed | None = None


class State(enum.StrEnum):
    """What the agent is doing, computed from Intent and Observed and never stored."""

    WAITING = "waiting"  # for a UI, or for the Service to be written
    PUBLISHED = "published"
    PARKED = "parked"  # nothing routes here; a new UI is published again
    BLOCKED = "blocked"  # someone has to act
    DRAINING = "draining"  # withdrawn, endpoints may still lead here
    DONE = "done"  # nothing routes here, and nothing is published again


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
