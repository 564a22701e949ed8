"""What the tests of the senses share: a World that folds what is told, and small servers that answer as scripted."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from agent.decide.desired import fold, initial
from agent.model import Fact, Listener, Scanned, World
from agent.sense.sockets import SocketTable
from agent.settings import Settings, load

APPLICATION = "spark-aaa"
ENV = {
    "POD_NAME": "drv-1",
    "POD_UID": "0a1b",
    "POD_NAMESPACE": "t",
    "KUBERNETES_SERVICE_HOST": "127.0.0.1",
    "SPARK_APPLICATION_ID": APPLICATION,
}
PATIENCE = 20.0  # seconds; only a failing test waits so long


def settings(**more: str) -> Settings:
    """Settings with these variables on top: names of the agent's own without their prefix are in lower case."""
    own = {f"SPARK_UI_AGENT_{name.upper()}": value for name, value in more.items() if name.islower()}
    plain = {name: value for name, value in more.items() if not name.islower()}
    return load({**ENV, **plain, **own})


class Told:
    """Folds facts into a World, keeps them in order, and wakes whoever waits for one."""

    def __init__(self, chosen: Settings | None = None) -> None:
        self.settings = chosen or settings()
        self.world: World = initial()
        self.facts: list[Fact] = []
        self.listen: Callable[[], None] = lambda: None
        self._changed = asyncio.Event()

    def tell(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.world = fold(self.world, fact, self.settings)
        self._changed.set()
        self.listen()

    def view(self) -> World:
        return self.world

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def appears(self, inode: int) -> None:
        await self.until(lambda: inode in self.world.listeners)

    async def vanishes(self, inode: int) -> None:
        await self.until(lambda: inode not in self.world.listeners)

    def scan(self, *ports: int) -> None:
        """Tells the real table, but nothing of other programs on this machine."""
        self.tell(Scanned(frozenset(listening(*ports))))


def listening(*ports: int) -> list[Listener]:
    table = SocketTable()
    try:
        return [listener for listener in table.scan().listeners if listener.port in ports]
    finally:
        table.close()


@contextlib.asynccontextmanager
async def running(work: Awaitable[None]) -> AsyncIterator[None]:
    """Runs `work` beside the block, and ends it with the block; a failure of either is one of the test's."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_await(work))
        try:
            yield
        finally:
            task.cancel()


async def _await(work: Awaitable[None]) -> None:
    await work


@dataclass
class Server:
    """A server on a port of its own; each connection runs `script` and is closed after it."""

    script: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    port: int = 0
    connections: int = 0
    open: int = 0
    requests: list[bytes] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            await self.script(reader, writer)
        except OSError:
            pass  # the agent has hung up
        finally:
            writer.transport.abort()
            self.open -= 1
            self.ended.set()


@contextlib.asynccontextmanager
async def serving(
    script: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    backlog: int = 1,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Server]:
    server = Server(script)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=backlog)
    server.port = listener.getsockname()[1]
    running_server = await asyncio.start_server(server.handle, sock=listener, backlog=backlog, ssl=tls)
    try:
        yield server
    finally:
        running_server.close()
        # The scripts end by themselves when their connection is gone; wait_closed differs between Pythons.
        async with asyncio.timeout(PATIENCE):
            while server.open:
                server.ended.clear()
                await server.ended.wait()


async def head(reader: asyncio.StreamReader) -> bytes:
    """The head of a request."""
    return await reader.readuntil(b"\r\n\r\n")


def http(
    status: str, body: bytes = b"", kind: str = "application/json", more: str = ""
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """A script: reads a request, gives one answer, closes."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    if kind:
        lines.append(f"Content-Type: {kind}")
    if more:
        lines.append(more)
    answer = "\r\n".join(lines).encode() + b"\r\n\r\n" + body
    return raw(answer)


def raw(answer: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return script


def applications(*ids: str) -> bytes:
    """The body of a driver's list."""
    entry = '{{"id":"{}","name":"n","attempts":[{{"completed":false,"endTimeEpoch":-1,"startTimeEpoch":1700000000000}}]}}'
    return ("[" + ",".join(entry.format(one) for one in ids) + "]").encode()
