"""A neighbour on the node's network who wants a certain port and tries without a pause until it is his.

He binds as another driver's Jetty would, and is a process of his own under a uid of his own.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import socket
import sys
import time
from collections.abc import AsyncIterator

from sandbox import launch
from sandbox.netns import NetworkNamespace

UID = 4711
ANSWER_SECONDS = 60.0


class Neighbour:
    """A running one; made by `neighbour`. Instants are CLOCK_MONOTONIC in ns."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def begin(self) -> None:
        """Let him try from now on; returns when the port was refused to him for the first time."""
        if self._process.stdin is None:
            raise LookupError("the neighbour has no input")
        self._process.stdin.write(b"begin\n")
        await self.said("refused")

    async def listens(self) -> int:
        """Wait until the port is his; return the instant at which he knew."""
        return await self.said("listens")

    async def said(self, event: str) -> int:
        """Wait for his next word, which has to be ``event``; return its instant."""
        if self._process.stdout is None:
            raise LookupError("the neighbour has no output")
        async with asyncio.timeout(ANSWER_SECONDS):
            told = json.loads(await self._process.stdout.readline())
        if told["event"] != event:
            raise LookupError(f"the neighbour says {told}, awaited was {event!r}")
        return int(told["at"])


@contextlib.asynccontextmanager
async def neighbour(network: NetworkNamespace, port: int) -> AsyncIterator[Neighbour]:
    """Have a neighbour who wants ``port``; what he got is free again when the block ends."""
    process = await launch.start(
        [sys.executable, "-S", "-m", "tests.spark.neighbour", str(port)],
        env={"PYTHONPATH": str(launch.REPOSITORY)},
        namespace_fd=network.fd,
        uid=UID,
        reads=[launch.REPOSITORY],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        made = Neighbour(process)
        await made.said("ready")
        yield made
    finally:
        await launch.end(process)


def say(event: str) -> None:
    """Write one line."""
    print(json.dumps({"event": event, "at": time.monotonic_ns()}), flush=True)


def listen(port: int) -> socket.socket | None:
    """Listen as Java does: dual-stack, SO_REUSEADDR. None where another one listens."""
    made = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(("::", port))
        made.listen(1)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return made


def main(port: int) -> None:
    """Try from the first line of the input on; keep the port to the input's end."""
    say("ready")
    sys.stdin.readline()
    refused = False
    while (made := listen(port)) is None:
        if not refused:
            say("refused")
        refused = True
    with made:
        say("listens")
        sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
