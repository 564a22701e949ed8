"""One careful question to one candidate: is this the web UI, and of which application.

A question is one connection that is closed after the answer: Spark 4 waits for open ones when it stops. Nothing is followed,
looked up or sent twice, whatever comes is bounded, and the deadline covers all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import ssl

import h11

from ..decide.answers import BODY_MAX, PATH
from ..model import Answer, Listener, Question, Said, Scheme
from .tls import TlsClient, TlsEndedError, TlsFailedError

HEAD_MAX = 16 * 1024  # bytes of one response head
TOTAL_MAX = HEAD_MAX + 2 * BODY_MAX  # bytes in all, chunk headers and interim responses included
_READ = 16 * 1024
_TLS_ALERT = b"\x15\x03"
_HTTP = b"HTTP/1."


def target(listener: Listener) -> str:
    """The address to ask: loopback for a wildcard socket (Java's `::` takes IPv4 too), else its own."""
    if not listener.wildcard:
        return listener.address
    return "::1" if listener.v6only else "127.0.0.1"


async def ask(question: Question, deadline: float) -> Answer:
    """Asks once for `/api/v1/applications` and gives whatever came; `deadline` in seconds of the loop's clock.

    The body holds at most BODY_MAX bytes; when so many come the rest is not read. A broken answer is NOT_HTTP.
    Raises nothing but CancelledError; the connection is closed in every case.
    """
    address = target(question.listener)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
            connection.setblocking(False)
            async with asyncio.timeout_at(deadline):
                return await _talk(connection, question, address)
    except TimeoutError:
        return Answer(Said.TIMEOUT)
    except ConnectionRefusedError:
        return Answer(Said.REFUSED)
    except ConnectionError:
        return Answer(Said.RESET)
    except TlsFailedError:
        return Answer(Said.TLS_FAILED)
    except TlsEndedError:
        return Answer(Said.TLS_ALERT)
    except OSError:
        return Answer(Said.TIMEOUT)  # no way there, no local port left: it could not be asked


async def _talk(connection: socket.socket, question: Question, address: str) -> Answer:
    loop = asyncio.get_running_loop()
    port = question.listener.port
    await loop.sock_connect(connection, (address, port))
    if connection.getsockname() == connection.getpeername():
        # Linux joins a socket to itself when its own random port is the one that it asks for.
        raise ConnectionRefusedError
    link = _Link(connection)
    if question.scheme is Scheme.HTTPS:
        link.tls = TlsClient(context())
        await link.handshake()
    host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
    headers = [
        ("Host", host),
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
        ("User-Agent", "spark-ui-agent"),
    ]
    request = http.send(h11.Request(method="GET", target=PATH, headers=headers))
    end = http.send(h11.EndOfMessage())
    with contextlib.suppress(ConnectionError):
        # One that hangs up early has perhaps said why: a TLS 1.3 server that wants a client certificate does.
        await link.send((request or b"") + (end or b""))
    answer = await _receive(link, http)
    link.end()
    return answer


class _Link:
    """Bytes there and back, in TLS or not."""

    def __init__(self, connection: socket.socket) -> None:
        self.tls: TlsClient | None = None
        self._connection = connection
        self._loop = asyncio.get_running_loop()

    async def handshake(self) -> None:
        while self.tls is not None and not self.tls.shake():
            await self._flush()
            self.tls.feed(await self._loop.sock_recv(self._connection, _READ))
        await self._flush()

    async def send(self, data: bytes) -> None:
        if self.tls is None:
            await self._loop.sock_sendall(self._connection, data)
        else:
            self.tls.write(data)
            await self._flush()

    async def receive(self) -> bytes:
        """At least one byte, or none when the other end has closed."""
        if self.tls is None:
            return await self._loop.sock_recv(self._connection, _READ)
        while (data := self.tls.read(_READ)) is None:
            await self._flush()
            self.tls.feed(await self._loop.sock_recv(self._connection, _READ))
        return data

    def end(self) -> None:
        """Says goodbye where TLS asks for it; nothing waits for that to arrive."""
        if self.tls is not None:
            self.tls.end()
            with contextlib.suppress(OSError):
                self._connection.send(self.tls.to_send())

    async def _flush(self) -> None:
        if self.tls is not None and (data := self.tls.to_send()):
            await self._loop.sock_sendall(self._connection, data)


async def _receive(link: _Link, http: h11.Connection) -> Answer:
    begin = b""
    while len(begin) < len(_HTTP):
        data = await link.receive()
        begin += data
        if not data:
            return Answer(Said.EOF)
        if begin.startswith(_TLS_ALERT):
            return Answer(Said.TLS_ALERT)
        if not _HTTP.startswith(begin[: len(_HTTP)]) and begin != _TLS_ALERT[:1]:
            return Answer(Said.NOT_HTTP)
    http.receive_data(begin)
    head: h11.Response | None = None
    body, total = bytearray(), len(begin)
    while True:
        try:
            event = http.next_event()
        except h11.ProtocolError:
            return Answer(Said.NOT_HTTP)
        if event is h11.NEED_DATA:
            if total >= TOTAL_MAX:
                return Answer(Said.NOT_HTTP)
            data = await link.receive()
            if not data and head is None:
                return Answer(Said.EOF)
            total += len(data)
            http.receive_data(data)
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if head is not None and len(body) >= BODY_MAX:
                return _answer(head, bytes(body[:BODY_MAX]))
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            return _answer(head, bytes(body))
        elif not isinstance(event, h11.InformationalResponse):
            return Answer(Said.NOT_HTTP)


def _answer(head: h11.Response, body: bytes) -> Answer:
    found = {bytes(name): bytes(value).decode("latin-1") for name, value in head.headers}
    return Answer(
        Said.HTTP,
        status=head.status_code,
        content_type=found.get(b"content-type", ""),
        location=found.get(b"location", ""),
        body=body,
    )


@functools.cache
def context() -> ssl.SSLContext:
    """TLS 1.2 and newer to a listener that the socket table has named: its certificate proves nothing more.

    No name is sent or checked, and weak keys pass: users make their own certificates.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers("DEFAULT:@SECLEVEL=0")
    return made
