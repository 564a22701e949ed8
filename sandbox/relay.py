"""A transparent TCP relay between the host's network and a namespace, in either direction."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator

from sandbox.netns import CONNECT_SECONDS, NetworkNamespace

_CHUNK = 65536


class Relay:
    """Listens at ``host``:``port`` and carries bytes to and from a target; see `relay`."""

    def __init__(self, target_namespace: NetworkNamespace | None, target: tuple[str, int]) -> None:
        self.host = ""
        self.port = 0
        self.connections = 0
        self._target_namespace = target_namespace
        self._target = target
        self._tasks: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one accepted connection, in a task of its own."""
        self.connections += 1
        task = asyncio.create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cut all connections."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # a refused target is a closed connection to the client: the relay has no other way to say so
            with contextlib.suppress(OSError, TimeoutError):
                far_reader, far_writer = await self._open()
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(_pump(reader, far_writer))
                        group.create_task(_pump(far_reader, writer))
                finally:
                    far_writer.close()
        finally:
            writer.close()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._target
        if self._target_namespace is not None:
            return await asyncio.open_connection(sock=await self._target_namespace.connect(host, port))
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(host, port)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry one direction to its end, and hand on how it ended: by a half-close or by a reset."""
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except ConnectionResetError:
        # linger of zero seconds: closing sends a RST; the socket may be closed already
        with contextlib.suppress(OSError):
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        writer.transport.abort()
    except OSError:
        pass


@contextlib.asynccontextmanager
async def relay(
    namespace: NetworkNamespace | None,
    listen_port: int,
    host: str,
    port: int,
    *,
    listen_host: str = "127.0.0.1",
    target_namespace: NetworkNamespace | None = None,
) -> AsyncIterator[Relay]:
    """Listen at ``listen_host``:``listen_port`` in ``namespace`` and forward to ``host``:``port``.

    Port 0 lets the kernel choose; the yielded relay tells ``port`` and how many ``connections`` came. ``None`` as a namespace
    is this process's own network. Connections into ``target_namespace`` come from its observer address.
    Raises `OSError` when the port is taken.
    """
    if namespace is not None:
        server_socket = namespace.listen(listen_host, listen_port)
    else:
        server_socket = socket.create_server((listen_host, listen_port))
    carrier = Relay(target_namespace, (host, port))
    carrier.host, carrier.port = server_socket.getsockname()[:2]
    server = await asyncio.start_server(carrier.accept, sock=server_socket)
    try:
        yield carrier
    finally:
        server.close()
        await carrier.close()
