"""Kubernetes Events on our own Pod, best effort: nothing waits for them and nothing fails by them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from .. import times
from ..model import ApiError, ForbiddenError, State, Status
from ..settings import Identity, Settings
from .logs import Log
from .report import line

PUBLISHED = "SparkUIPublished"
PARKED = "SparkUIParked"
BLOCKED = "SparkUIBlocked"

COMPONENT = "spark-ui-agent"
_LONGEST_MESSAGE = 1024  # kube-apiserver: of an events.k8s.io/v1 note; core/v1 shows the same object
_LONGEST_POD = 230  # of an Event's name, 253 at most, with a dot and 16 digits after it
_QUEUE = 8


def reason_for(status: Status) -> str | None:
    """The Event's reason for this status, or None where it is none of people's business."""
    match status.state:
        case State.PUBLISHED:
            return PUBLISHED
        case State.PARKED | State.DONE:
            return PARKED
        case State.BLOCKED:
            return BLOCKED
    return None


def body(identity: Identity, reason: str, message: str, nanoseconds: int) -> dict[str, object]:
    """A core/v1 Event about our Pod; `nanoseconds` since the epoch make its name its own, as client-go does."""
    when = datetime.fromtimestamp(nanoseconds // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{identity.pod[:_LONGEST_POD].rstrip('.-')}.{nanoseconds:x}",
            "namespace": identity.namespace,
        },
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": identity.pod,
            "namespace": identity.namespace,
            "uid": identity.uid,
        },
        "reason": reason,
        "message": message[:_LONGEST_MESSAGE],
        "type": "Warning" if reason == BLOCKED else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": identity.pod,
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }


class Events:
    """Sends one Event for each change. `tell` never waits; `run` sends until cancelled.

    Without the right to create Events it says so once, at debug level, and sends no more.
    """

    def __init__(
        self,
        settings: Settings,
        create: Callable[[Mapping[str, object]], Awaitable[object]],
        log: Log,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._create = create
        self._identity = settings.identity
        self._log = log
        self._now = now
        self._queue: asyncio.Queue[dict[str, object]] = asyncio.Queue(_QUEUE)
        self._last: tuple[object, ...] | None = None
        self._refused = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def sent(self) -> None:
        """Returns when nothing is left to send: the last Event of a life is its most useful one."""
        await self._idle.wait()

    def tell(self, status: Status) -> None:
        """Notes an Event where `status` is news; a full queue loses the oldest."""
        reason = reason_for(status)
        if reason is None or self._refused:
            return
        if reason == PUBLISHED:
            news: tuple[object, ...] = (reason, status.port, status.scheme, status.service)
        elif reason == BLOCKED:
            news = (reason, status.reason)
        else:
            news = (reason,)
        if news == self._last:
            return
        self._last = news
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(body(self._identity, reason, line(status), self._now()))
        self._idle.clear()

    async def run(self) -> None:
        """Sends what was told, one at a time, each bounded by `times.EVENT`; returns when it may not."""
        while True:
            event = await self._queue.get()
            try:
                async with asyncio.timeout(times.EVENT):
                    await self._create(event)
            except ForbiddenError as error:
                self._log.debug("no Events: the verb create on events is missing", error=str(error))
                self._refused = True
                self._idle.set()
                return
            except (ApiError, TimeoutError) as error:
                self._log.debug("an Event was lost", reason=event["reason"], error=str(error))
            if self._queue.empty():
                self._idle.set()
