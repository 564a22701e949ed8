"""The agent's API client with its wire cut: `Kube` whole, but requests go to a stand-in API in this process.

A request that was sent is carried out even if nobody waits for its answer any more, as on a real network.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from urllib.parse import unquote

from agent import times
from agent.act.kube import Kube
from agent.decide.tree import Json
from agent.model import UnreachableError
from agent.settings import Settings
from sandbox.standin import (
    Answer,
    Delay,
    Drop,
    Faults,
    Hold,
    Reply,
    Request,
    Silence,
    StatusError,
    Truncate,
    When,
)
from sandbox.standin.request import Target, target
from tests.support.cluster import Cluster
from tests.support.make import settings

TRIP = 0.002  # seconds to the API server, and as long back
SETTLE = 0.010  # from a write to what the endpoint controller makes of it

Call = tuple[str, str, Json | None]


class Wire(Kube):
    """A client of `cluster`. `calls` are the requests as they were sent: verb, resource or name, body."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        *,
        trip: Callable[[], float] = lambda: TRIP,
        settle: float = SETTLE,
    ) -> None:
        super().__init__(settings)
        self.settings = settings
        self.cluster = cluster
        self.faults = Faults()
        self.calls: list[Call] = []
        self.trip = trip
        self.settle = settle
        self.admit: Callable[[Request], Request] = lambda request: request  # an admission webhook
        self._settling: asyncio.TimerHandle | None = None
        self._busy: set[asyncio.Task[tuple[int, Mapping[str, str], bytes]]] = set()
        cluster.store.ledger.subscribe(self._changed)

    @property
    def writes(self) -> list[Call]:
        """The requests that would change something."""
        return [call for call in self.calls if call[0] not in ("get", "list")]

    def forget(self) -> None:
        """Begins `calls` anew."""
        self.calls.clear()

    async def close(self) -> None:
        """Ends what is still under way."""
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    async def _send(
        self, method: str, path: str, query: Mapping[str, str] | None, body: Json | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        request = Request(
            method,
            unquote(path),
            dict(query or {}),
            b"" if body is None else json.dumps(body).encode(),
            "application/merge-patch+json" if method == "PATCH" else "application/json",
            self.cluster.token,
        )
        wanted = target(request)
        self.calls.append((wanted.verb, wanted.name or wanted.resource.plural, body))
        task = asyncio.ensure_future(self._carry(request, wanted))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)
        try:
            async with asyncio.timeout(times.CALL):
                return await asyncio.shield(task)
        except TimeoutError as error:
            raise UnreachableError(0, "Timeout", "no answer in time") from error
        except ConnectionError as error:
            raise UnreachableError(0, type(error).__name__, "dropped") from error

    async def _carry(self, request: Request, wanted: Target) -> tuple[int, Mapping[str, str], bytes]:
        await asyncio.sleep(self.trip())
        planted = await self._suffer(wanted, When.BEFORE)
        if planted is None:
            reply = self.cluster.api.handle(self.admit(request))
            planted = await self._suffer(wanted, When.AFTER) or reply
        await asyncio.sleep(self.trip())
        return planted.status, planted.headers, json.dumps(planted.body).encode()

    async def _suffer(self, wanted: Target, when: When) -> Reply | None:
        for effect in self.faults.strike(wanted, when):
            match effect:
                case Delay(seconds):
                    await asyncio.sleep(seconds)
                case Hold():
                    effect.reached.set()
                    await effect.released.wait()
                case Silence():
                    await asyncio.Event().wait()
                case Drop() | Truncate():
                    raise ConnectionResetError
                case Answer():
                    return effect.reply()
        return None

    def _changed(self) -> None:
        if self._settling is None:
            self._settling = asyncio.get_running_loop().call_later(self.settle, self._settled)

    def _settled(self) -> None:
        self.cluster.store.settle()
        self._settling = None


def wired(*services: Mapping[str, object], settle: float = SETTLE, **chosen: str) -> tuple[Cluster, Wire]:
    """A cluster with our Pod and these Services, and a client of it with the Pod's settings and `chosen`."""
    cluster = Cluster()
    for one in services:
        cluster.add_service(one)
    return cluster, Wire(cluster, settings(chosen, uid=cluster.uid), settle=settle)


__all__ = ["SETTLE", "TRIP", "Call", "StatusError", "Wire", "wired"]
