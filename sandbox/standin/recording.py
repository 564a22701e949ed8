"""What the stand-in was asked: every request, as it came and as it ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sandbox.standin.resources import Object


@dataclass
class Recorded:
    """One request. ``at`` is time.monotonic_ns() of its arrival.

    ``verb`` and ``resource`` are empty for a path that names no resource. ``status`` is what was answered, None as
    long as (or because) nothing was.
    """

    at: int
    method: str
    path: str
    query: Mapping[str, str]
    content_type: str
    body: bytes
    user_agent: str
    verb: str = ""
    resource: str = ""
    name: str = ""
    status: int | None = None
    ended: bool = False

    @property
    def json(self) -> Object:
        """The decoded body of a request that carried a JSON object."""
        decoded: Object = json.loads(self.body)
        return decoded


class Recording:
    """The requests of one stand-in, in order of arrival; `until` waits for one."""

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self._news = asyncio.Event()

    def arrived(self, request: Recorded) -> None:
        """Add a request."""
        self.requests.append(request)
        self._tell()

    def ended(self, request: Recorded, status: int | None) -> None:
        """Note how a request ended; None when it got no whole answer."""
        request.status, request.ended = status, True
        self._tell()

    async def until(
        self, fits: Callable[[Recorded], bool], *, count: int = 1, within: float = 10.0
    ) -> list[Recorded]:
        """Wait until ``count`` requests fit, and return those that do; TimeoutError after ``within`` seconds."""
        async with asyncio.timeout(within):
            while len(found := [request for request in self.requests if fits(request)]) < count:
                self._news.clear()
                await self._news.wait()
        return found

    def _tell(self) -> None:
        self._news.set()
