"""Everything that happened to a namespace's Services and EndpointSlices, by watch, on the tests' one clock."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from sandbox.apiclient import DEFAULT_SECONDS, ApiClient, Object
from sandbox.services import endpoint_slices, routes, services

# longer than any test; kube-apiserver itself ends a watch after 30 minutes at the earliest
RECORD_SECONDS = 900.0
_SERVICE_NAME = "kubernetes.io/service-name"

Route = tuple[str, int]


class RecordError(Exception):
    """A watch ended while it was needed: what was recorded has a gap and proves nothing."""


@dataclass(frozen=True)
class Change:
    """One event of a watch; ``at`` is when it was read (CLOCK_MONOTONIC, ns)."""

    at: int
    type: str
    object: Object

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.object["metadata"]["name"])


@dataclass(frozen=True)
class Routed:
    """From ``at`` on, a Service led to exactly ``routes``: (address, port) of each endpoint that was asked for."""

    at: int
    routes: frozenset[Route]


class Changes:
    """The events so far, in order; made by `recording`."""

    def __init__(self) -> None:
        self.services: list[Change] = []
        self.slices: list[Change] = []
        self._news = asyncio.Event()
        self._broken = ""

    def of_service(self, name: str) -> list[Change]:
        """Return the events of one Service."""
        return [change for change in self.services if change.name == name]

    def routed(self, service: str, *, ready: bool = True) -> list[Routed]:
        """Return where a Service led, over all its slices, after each event that changed that.

        To its ready endpoints; with ``ready`` False to any, as those of a Pod that is being deleted.
        """
        history: list[Routed] = []
        standing: dict[str, Object] = {}
        for change in self.slices:
            if change.object["metadata"].get("labels", {}).get(_SERVICE_NAME) != service:
                continue
            if change.type == "DELETED":
                standing.pop(change.name, None)
            else:
                standing[change.name] = change.object
            now = frozenset(routes(standing.values(), ready=ready))
            if not history or history[-1].routes != now:
                history.append(Routed(change.at, now))
        return history

    def leads_to(self, service: str, *, ready: bool = True) -> frozenset[Route]:
        """Return where a Service leads as of the last event; ``ready`` as for `routed`."""
        history = self.routed(service, ready=ready)
        return history[-1].routes if history else frozenset()

    async def until(self, holds: Callable[[Changes], bool], within: float = DEFAULT_SECONDS) -> None:
        """Wait until ``holds``; asked at once and after each event.

        Raises TimeoutError with what was seen last, or `RecordError`.
        """
        try:
            async with asyncio.timeout(within):
                while not holds(self):
                    self.check()
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            last = [(change.type, change.object) for change in (*self.services[-1:], *self.slices[-1:])]
            raise TimeoutError(f"not seen within {within:g} s; last: {last}"[:2000]) from None

    async def until_routed(
        self, service: str, wanted: set[Route], within: float = DEFAULT_SECONDS, *, ready: bool = True
    ) -> int:
        """Wait until a Service leads to exactly ``wanted``; return since when. ``ready`` as for `routed`."""
        await self.until(lambda seen: seen.leads_to(service, ready=ready) == wanted, within)
        history = self.routed(service, ready=ready)
        return history[-1].at if history else 0

    def check(self) -> None:
        """Raise `RecordError` when a watch has ended."""
        if self._broken:
            raise RecordError(self._broken)

    async def follow(self, api: ApiClient, path: str, into: list[Change], accepted: asyncio.Event) -> None:
        """Take in the watch of one collection, to its end; ``accepted`` is set once the server has opened it."""
        try:
            async with api.watch(path, within=RECORD_SECONDS) as stream:
                accepted.set()
                async for event in stream:
                    if event.type == "ERROR":
                        break
                    into.append(Change(time.monotonic_ns(), event.type, event.object))
                    self._news.set()
        finally:
            self._broken = f"the watch of {path} has ended"
            self._news.set()


@contextlib.asynccontextmanager
async def recording(api: ApiClient, namespace: str) -> AsyncIterator[Changes]:
    """Record while the block lasts; inside it, the server has accepted both watches.

    Objects that are there already come as ADDED. Raises `RecordError` at the end when a watch had ended early.
    """
    changes = Changes()
    following: list[asyncio.Task[None]] = []
    try:
        for path, into in (
            (services(namespace), changes.services),
            (endpoint_slices(namespace), changes.slices),
        ):
            accepted = asyncio.Event()
            following.append(asyncio.create_task(changes.follow(api, path, into, accepted)))
            async with asyncio.timeout(DEFAULT_SECONDS):
                await accepted.wait()
        yield changes
        changes.check()
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
