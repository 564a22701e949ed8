"""Faults on purpose: what can go wrong between a client and its API server, scripted per verb and resource."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from sandbox.standin.request import Reply, Target
from sandbox.standin.status import StatusError

_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class When(Enum):
    """On which side of the work a fault strikes: a write is made ``AFTER`` only, and its answer is then lost."""

    BEFORE = auto()
    AFTER = auto()


@dataclass(frozen=True)
class Delay:
    """Wait ``seconds``, then go on."""

    seconds: float


@dataclass(frozen=True)
class Hold:
    """Wait until `release` is called, then go on. ``reached`` is set once a request waits."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let the waiting requests, and all later ones, go on."""
        self.released.set()


@dataclass(frozen=True)
class Drop:
    """Close the connection without an answer; with ``reset`` by a RST, else by a FIN."""

    reset: bool = False


@dataclass(frozen=True)
class Silence:
    """Never answer; the connection stays open until the client gives up."""


@dataclass(frozen=True)
class Truncate:
    """Send the head and half of the answer's body, then close the connection."""


@dataclass(frozen=True)
class Answer:
    """Answer ``status`` with a Status object, and Retry-After in seconds where given."""

    status: int
    retry_after: int | None = None
    message: str = "planted by the stand-in"

    def reply(self) -> Reply:
        """Return the reply that is sent instead of the true one."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        details = None if self.retry_after is None else {"retryAfterSeconds": self.retry_after}
        error = StatusError(self.status, _REASONS.get(self.status, ""), self.message, details)
        return Reply(self.status, error.body(), headers)


Effect = Delay | Hold | Drop | Silence | Truncate | Answer


@dataclass
class Fault:
    """One planted fault. ``hits`` counts how often it struck; ``left`` how often it still will (None: always)."""

    effect: Effect
    when: When
    matches: Callable[[Target], bool]
    left: int | None
    hits: int = 0


class Faults:
    """The faults of one stand-in. Of several that fit a request all strike, in the order in which they were planted."""

    def __init__(self) -> None:
        self._planted: list[Fault] = []

    def plant(
        self,
        effect: Effect,
        *,
        verb: str = "*",
        resource: str = "*",
        name: str = "*",
        when: When = When.BEFORE,
        times: int | None = None,
    ) -> Fault:
        """Plant a fault on RBAC's verbs (get, list, watch, create, patch, update, delete) and resource plurals.

        ``*`` stands for all. It strikes ``times`` times, or until `clear` when that is None. `Truncate` strikes
        after the work whatever ``when`` says.
        """
        wanted: Mapping[str, str] = {"verb": verb, "resource": resource, "name": name}

        def matches(target: Target) -> bool:
            found = {"verb": target.verb, "resource": target.resource.plural, "name": target.name}
            return all(wanted[key] in ("*", found[key]) for key in wanted)

        fault = Fault(effect, When.AFTER if isinstance(effect, Truncate) else when, matches, times)
        self._planted.append(fault)
        return fault

    def clear(self) -> None:
        """Take all faults away, and let go whoever is held."""
        for fault in self._planted:
            if isinstance(fault.effect, Hold):
                fault.effect.release()
        self._planted.clear()

    def strike(self, target: Target, when: When) -> list[Effect]:
        """Return the effects that strike a request now, and count them."""
        struck = [
            fault
            for fault in self._planted
            if fault.when is when and fault.left != 0 and fault.matches(target)
        ]
        for fault in struck:
            fault.hits += 1
            if fault.left is not None:
                fault.left -= 1
        return [fault.effect for fault in struck]
