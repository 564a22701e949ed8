"""An HTTP server for a handful of short replies: one request for each connection, everything bounded.

It is aiohttp's own low-level server. Its parts are imported by their modules: `aiohttp.web` would load the
application framework as well, which is three times as much memory and CPU.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server

from .. import times

TEXT = "text/plain; charset=utf-8"
NAME = "spark-ui-agent"  # aiohttp's own Server header tells strangers the versions of Python and of aiohttp
_LONGEST_HEAD = (
    8192  # aiohttp bounds each field and their number; 32 heads of 1 MiB are too much for a sidecar
)
_MOST_CONNECTIONS = 32  # kubelet, a scraper and some people; any Pod of the cluster may try to connect
_NO_ACCESS_LOG = logging.Logger("access", logging.CRITICAL)  # aiohttp logs accesses at INFO
_TOO_LONG = (
    f"HTTP/1.1 431 Request Header Fields Too Large\r\nServer: {NAME}\r\nContent-Length: 0\r\n"
    "Connection: close\r\n\r\n"
).encode()


@dataclass(frozen=True, slots=True)
class Reply:
    """What one path says right now."""

    code: HTTPStatus
    body: str
    kind: str = TEXT


class _Connection(RequestHandler):
    """One connection: a head that is too long or can't be read is refused without a line in the log."""

    __slots__ = ("_received",)

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        # The server's own timer bounds a connection, whatever its peer does or leaves undone.
        super().__init__(server, loop=loop, keepalive_timeout=0, lingering_time=0, access_log=_NO_ACCESS_LOG)
        self._received = 0

    def data_received(self, data: bytes) -> None:
        """Takes what came; a body counts as well, since no path takes one."""
        self._received += len(data)
        if self._received <= _LONGEST_HEAD:
            super().data_received(data)
        elif self.transport is not None:
            self.transport.write(_TOO_LONG)
            self.force_close()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Strangers' mistakes are theirs to notice; only a defect of our own is logged."""
        if isinstance(exc, HttpProcessingError):
            return _response(Reply(HTTPStatus(status), "not a request that can be read"))
        self.log_exception("an HTTP endpoint failed", exc_info=exc)
        return _response(Reply(HTTPStatus(status), "a defect of the agent, told in its log"))


@dataclass(slots=True)
class _Open:
    transport: asyncio.Transport
    timer: asyncio.TimerHandle
    asked: bool = False  # a whole request has come


class Endpoints(Server):
    """The protocol factory of a listening socket: `reply` says what a path says; only GET and HEAD are taken.

    Each connection is over after `times.ENDPOINT`. One too many takes the place of the one that has been silent
    for longest, so that strangers who only connect can't keep kubelet's probes out.
    """

    def __init__(self, reply: Callable[[str], Reply]) -> None:
        super().__init__(self._respond)
        self._reply = reply
        self._open: dict[RequestHandler, _Open] = {}  # oldest first

    def __call__(self) -> RequestHandler:
        """The protocol of a new connection."""
        return _Connection(self, self._loop)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Takes the connection and bounds it."""
        super().connection_made(handler, transport)
        if len(self._open) >= _MOST_CONNECTIONS:
            silent = (one for one, state in self._open.items() if not state.asked)
            self._open.pop(next(silent, next(iter(self._open)))).transport.abort()
        timer = self._loop.call_later(times.ENDPOINT, transport.abort)
        self._open[handler] = _Open(transport, timer)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Makes room for another one."""
        super().connection_lost(handler, exc)
        if handler in self._open:
            self._open.pop(handler).timer.cancel()

    async def end(self) -> None:
        """Drops every connection at once. The listening socket is to be closed before."""
        for state in tuple(self._open.values()):
            state.transport.abort()
        await self.shutdown(times.FAREWELL)

    async def _respond(self, request: BaseRequest) -> StreamResponse:
        if request.protocol in self._open:
            self._open[request.protocol].asked = True
        if request.method not in ("GET", "HEAD"):
            refusal = _response(Reply(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are allowed"))
            refusal.headers["Allow"] = "GET, HEAD"
            return refusal
        return _response(self._reply(request.path))


def _response(reply: Reply) -> Response:
    """`reply` as aiohttp sends it: the connection's last."""
    response = Response(
        status=reply.code,
        reason=reply.code.phrase,
        body=reply.body.encode() + (b"" if reply.body.endswith("\n") else b"\n"),
        headers={"Content-Type": reply.kind, "Cache-Control": "no-store", "Server": NAME},
    )
    response.force_close()
    return response
