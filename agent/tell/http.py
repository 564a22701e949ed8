"""One HTTP request for each connection, answered at once: no task, no keep-alive, everything bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import h11

from .. import times

TEXT = "text/plain; charset=utf-8"
_LONGEST_HEAD = 8192
_MOST_CONNECTIONS = 32  # kubelet, a scraper and some people; any Pod of the cluster may try to connect


@dataclass(frozen=True, slots=True)
class Reply:
    """What one path says right now."""

    code: HTTPStatus
    body: str
    kind: str = TEXT


class Connection(asyncio.Protocol):
    """One request, one reply, closed; whatever the peer does, over after `times.ENDPOINT`.

    `connections` are all that are open: one too many is dropped, and the owner aborts the rest when it ends.
    """

    def __init__(self, reply: Callable[[str], Reply], connections: set[asyncio.Transport]) -> None:
        self._reply = reply
        self._connections = connections
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the connection, or drops it when there are too many."""
        if not isinstance(transport, asyncio.Transport):
            return
        if len(self._connections) >= _MOST_CONNECTIONS:
            transport.abort()
            return
        self._transport = transport
        self._connections.add(transport)
        self._timer = asyncio.get_running_loop().call_later(times.ENDPOINT, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Makes room for another one."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        """Replies once the head is whole; a body is not waited for, since no path takes one."""
        if self._transport is None or self._transport.is_closing():
            return
        try:
            self._parser.receive_data(data)
            event = self._parser.next_event()
        except h11.RemoteProtocolError as error:
            self._send(
                self._transport,
                Reply(HTTPStatus(error.error_status_hint), "not a request that can be read"),
            )
            return
        if isinstance(event, h11.Request):
            self._take(self._transport, event)
        elif event is not h11.NEED_DATA:
            self._transport.close()

    def _take(self, transport: asyncio.Transport, request: h11.Request) -> None:
        if request.method not in (b"GET", b"HEAD"):
            refusal = Reply(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are allowed")
            self._send(transport, refusal, [("Allow", "GET, HEAD")])
            return
        path = request.target.decode("ascii").partition("?")[0]
        self._send(transport, self._reply(path), whole=request.method == b"GET")

    def _send(
        self,
        transport: asyncio.Transport,
        reply: Reply,
        extra: list[tuple[str, str]] | None = None,
        *,
        whole: bool = True,
    ) -> None:
        body = reply.body.encode() + (b"" if reply.body.endswith("\n") else b"\n")
        headers = [
            ("Content-Type", reply.kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Connection", "close"),
            *(extra or []),
        ]
        head = h11.Response(status_code=reply.code, reason=reply.code.phrase.encode(), headers=headers)
        sent = self._parser.send(head) or b""
        transport.write(sent + body if whole else sent)
        transport.close()
