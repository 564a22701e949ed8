"""A client of the node that asks a Service in a loop, as a browser does that is left open."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from sandbox.node.cluster import Cluster
from sandbox.page import Page

PAUSE_SECONDS = 0.05
# an answer may take longer while a JVM starts, and then is not waited for
ANSWER_SECONDS = 5.0
# the first answer of a UI's REST interface, on a busy machine
SHOWN_SECONDS = 60.0


@dataclass(frozen=True)
class Asked:
    """One request: when it began and had ended (CLOCK_MONOTONIC, ns), and its page or None where it got none."""

    at: int
    ended: int
    page: Page | None


class Answers:
    """What a client has asked so far, in order."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._news = asyncio.Event()

    def add(self, asked: Asked) -> None:
        """Take one in."""
        self.asked.append(asked)
        self._news.set()

    async def until(self, holds: Callable[[Asked], bool]) -> None:
        """Wait until ``holds`` for one of the requests. Raises TimeoutError."""
        async with asyncio.timeout(SHOWN_SECONDS):
            while not any(map(holds, self.asked)):
                self._news.clear()
                await self._news.wait()


@contextlib.asynccontextmanager
async def asking(cluster: Cluster, host: str, port: int, path: str, answers: Answers) -> AsyncIterator[None]:
    """Ask one Service in a loop while the block lasts, over a new connection each time."""

    async def loop() -> None:
        while True:
            at, page = time.monotonic_ns(), None
            with contextlib.suppress(OSError, http.client.HTTPException):
                page = await cluster.fetch(host, port, path, seconds=ANSWER_SECONDS)
            answers.add(Asked(at, time.monotonic_ns(), page))
            await asyncio.sleep(PAUSE_SECONDS)

    task = asyncio.create_task(loop())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()
