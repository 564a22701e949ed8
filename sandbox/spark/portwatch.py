"""The harness's end of the recorder: listening sockets of a network, seen and gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from sandbox import launch
from sandbox.netns import NetworkNamespace
from sandbox.spark.sockdiag import Socket
from sandbox.spark.trace import Listener

T = TypeVar("T")

READY_SECONDS = 30.0


class RecorderError(Exception):
    """The recorder ended: the trace has a gap from here on."""


class PortWatch:
    """All listeners that the recorder has told of, by socket cookie; see `watch_ports`."""

    def __init__(self) -> None:
        self.listeners: dict[str, Listener] = {}
        self._changed = asyncio.Condition()
        self._ended = False

    async def until(self, find: Callable[[dict[str, Listener]], T | None], seconds: float, what: str) -> T:
        """Return what ``find`` finds, asked again whenever a listener came or went.

        Raises `TimeoutError` naming ``what``, or `RecorderError`.
        """
        try:
            async with asyncio.timeout(seconds), self._changed:
                while (found := find(self.listeners)) is None:
                    if self._ended:
                        raise RecorderError(f"the recorder of sockets ended before it saw {what}")
                    await self._changed.wait()
                return found
        except TimeoutError:
            raise TimeoutError(f"{what}: not seen within {seconds:.0f} s") from None

    async def follow(self, lines: asyncio.StreamReader) -> None:
        """Take the recorder's lines in, to their end."""
        async for line in lines:
            told = json.loads(line)
            async with self._changed:
                found = Socket(**told["socket"])
                if told["event"] == "listen":
                    self.listeners[found.cookie] = Listener(socket=found, seen_at=told["at"])
                else:
                    self.listeners[found.cookie].closed_at = told["at"]
                self._changed.notify_all()
        async with self._changed:
            self._ended = True
            self._changed.notify_all()


@contextlib.asynccontextmanager
async def watch_ports(namespace: NetworkNamespace | None) -> AsyncIterator[PortWatch]:
    """Record the listeners of ``namespace`` (None: of this process's own network) by a process of its own.

    Raises `RecorderError` when it does not start.
    """
    process = await launch.start(
        [sys.executable, "-S", "-m", "sandbox.spark.recorder"],
        env={"PYTHONPATH": str(launch.REPOSITORY)},
        namespace_fd=None if namespace is None else namespace.fd,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        if process.stdout is None:
            raise RecorderError("the recorder has no output")
        async with asyncio.timeout(READY_SECONDS):
            if not await process.stdout.readline():
                raise RecorderError(f"the recorder did not start (exit code {await process.wait()})")
        watch = PortWatch()
        following = asyncio.create_task(watch.follow(process.stdout))
        try:
            yield watch
        finally:
            await launch.end(process)
            await following
    finally:
        await launch.end(process)
