"""The receiver of the log hook: told at bind, asked before the UI closes, answered when nothing routes to it.

The one caller is log4j2's Http appender (java.net.HttpURLConnection, body sent with a fixed length): one POST, then it
waits on the driver's logging thread. Answers carry `Connection: close`, so that it never keeps a connection that
it might find broken later. Whoever else connects has no effect but a count.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import h11

from .. import times
from ..decide.hookpost import HEADER, Bound, Stopping, parse
from ..decide.log4j import Bounds
from ..model import Fact, HookBound, HookStopping, Listener, Scanned, Scheme

HOST = "127.0.0.1"
MOST_HEAD = 8 * 1024
MOST_BODY = 4 * 1024
MOST_STRANGERS = 32  # connections that have not shown the secret; one more, and the oldest of them goes
_BACKLOG = 128  # the kernel's queue, for a crowd that comes at once
MOST_KNOWN = 8  # requests with the secret at once: a driver has one, several JVMs of a Pod one each


class _RefusedError(Exception):
    """The request is answered with `status` and counted as `outcome`; nothing else comes of it."""

    def __init__(self, status: int, outcome: str) -> None:
        super().__init__(outcome)
        self.status = status
        self.outcome = outcome


class LogHook:
    """Listens on 127.0.0.1:`port` and tells `HookBound` and `HookStopping`.

    `timeout` is HOOK_TIMEOUT in seconds. `scan` reads the listening sockets right now. `withdrawn(pid, deadline)`
    returns when nothing routes to the UI of that JVM, or False at the deadline (loop time). `count` takes the outcome
    of each connection, `warn` a line for people. `driver_uid` owns the sockets of the driver.
    """

    def __init__(
        self,
        port: int,
        secret: str,
        timeout: float,
        tell: Callable[[Fact], None],
        *,
        scan: Callable[[], Scanned],
        withdrawn: Callable[[int, float], Awaitable[bool]],
        count: Callable[[str], None],
        warn: Callable[[str], None],
        driver_uid: int,
    ) -> None:
        self._port = port
        self._secret = secret.encode()
        self._bound = Bounds.of(timeout).answer
        self._tell = tell
        self._scan = scan
        self._withdrawn = withdrawn
        self._count = count
        self._warn = warn
        self._driver_uid = driver_uid
        self._strangers: dict[asyncio.StreamWriter, None] = {}  # in order of arrival
        self._known = 0
        self._socket: socket.socket | None = None

    @property
    def inodes(self) -> frozenset[int]:
        """Our own listening sockets."""
        return frozenset({os.fstat(self._socket.fileno()).st_ino} if self._socket is not None else ())

    async def run(self) -> None:
        """Serves until cancelled. A port that someone else holds is said once and tried again."""
        said = False
        while True:
            try:
                self._socket = socket.create_server((HOST, self._port), backlog=_BACKLOG)
            except OSError as error:
                if not said:
                    self._warn(
                        f"the log hook can't listen on {HOST}:{self._port}: {error}; "
                        "until it can, the UI is found by its socket"
                    )
                said = True
                await asyncio.sleep(times.HOOK_PORT_RETRY)
            else:
                await self._serve(self._socket)

    async def _serve(self, listener: socket.socket) -> None:
        try:
            async with asyncio.TaskGroup() as group:

                def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                    group.create_task(self._converse(reader, writer))

                server = await asyncio.start_server(connected, sock=listener, limit=MOST_HEAD)
                try:
                    # Not serve_forever: from Python 3.12 on its end waits for whoever is connected.
                    await asyncio.Event().wait()
                finally:
                    server.close()
        finally:
            self._socket = None
            listener.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived = asyncio.get_running_loop().time()
        self._strangers[writer] = None
        if len(self._strangers) > MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD)
        known = False
        try:
            async with asyncio.timeout_at(arrived + times.HOOK_REQUEST):
                await self._head(connection, reader)
                known = True
                self._known += 1
                self._strangers.pop(writer, None)
                if self._known > MOST_KNOWN:
                    raise _RefusedError(503, "crowded")
                body = await self._body(connection, reader)
            outcome = await self._heard(body, arrived + self._bound)
            await _answer(connection, writer, 200)
        except _RefusedError as refused:
            outcome = refused.outcome
            with suppress(OSError, h11.LocalProtocolError):
                await _answer(connection, writer, refused.status)
        except TimeoutError:
            outcome = "slow"
        except h11.RemoteProtocolError:
            outcome = "malformed"
        except OSError:
            outcome = "broken"
        finally:
            self._known -= known
            self._strangers.pop(writer, None)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()
        self._count(outcome)

    async def _head(self, connection: h11.Connection, reader: asyncio.StreamReader) -> None:
        """Reads the head; returns only when it shows the secret."""
        event = await _next(connection, reader)
        if not isinstance(event, h11.Request):
            raise _RefusedError(400, "malformed")
        shown = [value for name, value in event.headers if name == HEADER.lower().encode()]
        if len(shown) != 1 or not hmac.compare_digest(shown[0], self._secret):
            raise _RefusedError(403, "forbidden")
        if event.method != b"POST":
            raise _RefusedError(405, "malformed")

    async def _body(self, connection: h11.Connection, reader: asyncio.StreamReader) -> bytes:
        body = bytearray()
        while isinstance(event := await _next(connection, reader), h11.Data):
            body += event.data
            if len(body) > MOST_BODY:
                raise _RefusedError(413, "malformed")
        if not isinstance(event, h11.EndOfMessage):
            raise _RefusedError(400, "malformed")
        return bytes(body)

    async def _heard(self, body: bytes, deadline: float) -> str:
        """Does what the posted line asks for; the outcome to count.

        A line that is none of ours is answered like the others: the driver can't do anything about it.
        """
        post = parse(body)
        if isinstance(post, Bound):
            listener = self._listener(post.port)
            scheme = Scheme.HTTPS if post.https else Scheme.HTTP
            self._tell(HookBound(post.pid, post.port, scheme, listener))
            return "bound" if listener is not None else "bound-closed"
        if isinstance(post, Stopping):
            self._tell(HookStopping(post.pid))
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    if await self._withdrawn(post.pid, deadline):
                        return "stopping"
            return "stopping-late"
        return "unknown"

    def _listener(self, port: int) -> Listener | None:
        """The driver's socket that listens on `port` now; one that others can reach comes first."""
        found = [
            one
            for one in self._scan().listeners
            if one.port == port and one.uid == self._driver_uid and one.inode not in self.inodes
        ]
        return min(found, key=lambda one: (one.loopback, not one.wildcard, one.inode), default=None)


async def _next(connection: h11.Connection, reader: asyncio.StreamReader) -> object:
    """The next event; reads only as much as h11 asks for."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(MOST_HEAD))
    return event


async def _answer(connection: h11.Connection, writer: asyncio.StreamWriter, status: int) -> None:
    """A whole answer in one write."""
    headers = [("Content-Length", "0"), ("Connection", "close")]
    head = connection.send(h11.Response(status_code=status, headers=headers, reason=b"-"))
    writer.write((head or b"") + (connection.send(h11.EndOfMessage()) or b""))
    await writer.drain()
