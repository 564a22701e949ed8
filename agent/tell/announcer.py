"""Says each change of status once: a line in the log, the gauges, and whoever else follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from ..model import State, Status
from .logs import Log
from .metrics import Metrics


def utc_now() -> datetime:
    """The wall clock, for people."""
    return datetime.now(UTC)


class Announcer:
    """Takes the status after each fact; `since` is when it last changed.

    A change is another state, reason, target or Service. Other words for the same reason, or the hook's state, are
    no change.
    """

    def __init__(
        self,
        log: Log,
        metrics: Metrics,
        followers: Sequence[Callable[[Status], None]] = (),
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._log = log
        self._metrics = metrics
        self._followers = tuple(followers)
        self._now = now
        self._last: Status | None = None
        self._changed = now()

    @property
    def since(self) -> str:
        """When the state last changed: ISO 8601, UTC, whole seconds."""
        return self._changed.strftime("%Y-%m-%dT%H:%M:%SZ")

    def tell(self, status: Status) -> None:
        """Says `status` where it is news."""
        last = self._last
        if last is not None and _news(status) == _news(last):
            return
        self._last = status
        self._changed = self._now()
        self._measure(status, last)
        self._write(status)
        for follower in self._followers:
            follower(status)

    def _measure(self, status: Status, last: Status | None) -> None:
        for state in State:
            self._metrics.gauge("state", state is status.state, state=state.value)
        blocked = {"reason": status.reason} if status.state is State.BLOCKED else {}
        self._metrics.only("blocked", **blocked)
        self._metrics.gauge("last_change_timestamp_seconds", self._changed.timestamp())
        if status.state is State.PUBLISHED:
            self._metrics.count("publishes_total")
        elif last is not None and last.state is State.PUBLISHED:
            self._metrics.count("parks_total")

    def _write(self, status: Status) -> None:
        told = {
            "service": status.service,
            "port": status.port,
            "scheme": status.scheme,
            "application": status.application,
            "proof": status.proof,
            "reason": status.reason,
            "found": status.found,
            "remedy": "" if status.remedy == "none needed" else status.remedy,
        }
        write = self._log.warning if status.state is State.BLOCKED else self._log.info
        write(status.state.value, **{key: value for key, value in told.items() if value not in (None, "")})


def _news(status: Status) -> tuple[object, ...]:
    return (
        status.state,
        status.reason,
        status.port,
        status.scheme,
        status.application,
        status.service,
    )
