"""A client of the node that asks a Service in a loop, as a browser does that is left open."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from sandbox.node.cluster import Cluster
from sandbox.page import Page

PAUSE_SECONDS = 0.05
# an answer may take longer while a JVM starts, and then is not waited for
ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class Asked:
    """One request: when it began (CLOCK_MONOTONIC, ns), and its page or None where it got none."""

    at: int
    page: Page | None


async def ask(cluster: Cluster, host: str, port: int, path: str) -> Asked:
    """Ask once, over a connection of its own."""
    at = time.monotonic_ns()
    page = None
    with contextlib.suppress(OSError, http.client.HTTPException):
        page = await cluster.fetch(host, port, path, seconds=ANSWER_SECONDS)
    return Asked(at, page)


@contextlib.asynccontextmanager
async def asking(
    cluster: Cluster, host: str, port: int, path: str, asked: list[Asked]
) -> AsyncIterator[None]:
    """Ask one Service in a loop while the block lasts, and add each request to ``asked``."""

    async def loop() -> None:
        while True:
            asked.append(await ask(cluster, host, port, path))
            await asyncio.sleep(PAUSE_SECONDS)

    task = asyncio.create_task(loop())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()
