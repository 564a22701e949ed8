"""The stand-in over HTTP: one aiohttp server, its faults and its recording."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import time
from collections.abc import Awaitable, Sequence

from aiohttp import web

from sandbox.standin.api import Api
from sandbox.standin.faults import Answer, Delay, Drop, Effect, Faults, Hold, Silence, Truncate, When
from sandbox.standin.recording import Recorded, Recording
from sandbox.standin.request import Reply, Request, Target, target
from sandbox.standin.resources import Object
from sandbox.standin.status import StatusError

# A server that ends waits this long for handlers, all of which are told to end.
SHUTDOWN_SECONDS = 1.0
LARGEST_BODY = 4 * 1024 * 1024


class _DroppedError(Exception):
    """The connection has been closed on purpose; there is nobody left to answer."""


class Server:
    """Serves one `Api` on one socket, and lets the controllers follow each write after ``settle_delay`` seconds.

    With ``settle_delay`` None they wait for `Store.settle` to be called, so that what lies between a write and its
    effect can be looked at.
    """

    def __init__(self, api: Api, *, settle_delay: float | None) -> None:
        self.api = api
        self.faults = Faults()
        self.recording = Recording()
        self.settle_delay = settle_delay
        self._closing = asyncio.Event()
        self._changed = asyncio.Event()
        self._settling: asyncio.TimerHandle | None = None
        self._runner: web.AppRunner | None = None

    async def open(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Listen, and return the port; OSError when it is taken."""
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS
        )
        await runner.setup()
        self._runner = runner
        site = web.TCPSite(runner, host, port, ssl_context=tls, reuse_address=True)
        await site.start()
        self.api.store.ledger.subscribe(self._on_change)
        bound: int = runner.addresses[0][1]
        return bound

    async def close(self) -> None:
        """Stop listening, end every watch and every held request."""
        self._closing.set()
        self._wake()
        self.faults.clear()
        if self._settling is not None:
            self._settling.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    def _on_change(self) -> None:
        self._wake()
        if self._settling is None and self.settle_delay is not None:
            self._settling = asyncio.get_running_loop().call_later(self.settle_delay, self._settle)

    def _wake(self) -> None:
        # each watch waits for the event that was there before it looked
        self._changed.set()
        self._changed = asyncio.Event()

    def _settle(self) -> None:
        self.api.store.settle()
        # only now: the changes that settling makes must not ask for it again
        self._settling = None

    async def _serve(self, http: web.Request) -> web.StreamResponse:
        request = await _read(http)
        try:
            wanted: Target | None = target(request)
        except StatusError:
            wanted = None
        recorded = Recorded(
            time.monotonic_ns(),
            request.method,
            request.path,
            dict(request.query),
            request.content_type,
            request.body,
            http.headers.get("User-Agent", ""),
        )
        if wanted is not None:
            recorded.verb, recorded.resource = wanted.verb, wanted.resource.plural
            recorded.name = wanted.name
        self.recording.arrived(recorded)
        status = None
        try:
            response = await self._answer(http, request, wanted)
            status = response.status
        except _DroppedError:
            return web.Response()  # goes nowhere: the connection is closed
        finally:
            self.recording.ended(recorded, status)
        return response

    async def _answer(self, http: web.Request, request: Request, wanted: Target | None) -> web.StreamResponse:
        planted = await self._suffer(http, wanted, When.BEFORE)
        if planted is not None:
            return _response(planted)
        if wanted is not None and wanted.verb == "watch":
            return await self._watch(http, request)
        reply = self.api.handle(request)
        planted = await self._suffer(http, wanted, When.AFTER, reply)
        return _response(reply if planted is None else planted)

    async def _suffer(
        self, http: web.Request, wanted: Target | None, when: When, reply: Reply | None = None
    ) -> Reply | None:
        """Let the planted faults strike; return the reply that one of them gives instead of the true one."""
        effects: Sequence[Effect] = self.faults.strike(wanted, when) if wanted is not None else ()
        for effect in effects:
            match effect:
                case Delay(seconds):
                    await self._unless_closing(asyncio.sleep(seconds))
                case Hold():
                    effect.reached.set()
                    await self._unless_closing(effect.released.wait())
                case Silence():
                    await self._closing.wait()
                    raise _drop(http, reset=False)
                case Drop(reset):
                    raise _drop(http, reset=reset)
                case Truncate():
                    await _truncate(http, reply)
                    raise _drop(http, reset=False)
                case Answer():
                    return effect.reply()
        return None

    async def _unless_closing(self, waiting: Awaitable[object]) -> None:
        closing = asyncio.ensure_future(self._closing.wait())
        wanted = asyncio.ensure_future(waiting)
        try:
            await asyncio.wait({closing, wanted}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
            wanted.cancel()

    async def _watch(self, http: web.Request, request: Request) -> web.StreamResponse:
        try:
            watch = self.api.watch(request)
        except StatusError as error:
            return _response(Reply(error.code, error.body()))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(http)
        asked = request.query.get("timeoutSeconds", "")
        seconds = float(asked) if asked.isdecimal() and int(asked) else None  # 0 is as good as nothing
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(seconds):
                while not watch.over and not self._closing.is_set():
                    changed = self._changed
                    for event in watch.take():
                        await response.write(_encode(event) + b"\n")
                    if not watch.over:
                        await changed.wait()
        return response


async def _read(http: web.Request) -> Request:
    scheme, _, token = http.headers.get("Authorization", "").partition(" ")
    return Request(
        method=http.method,
        path=http.path,
        query=dict(http.query),
        body=await http.read(),
        content_type=http.content_type if "Content-Type" in http.headers else "",
        token=token.strip() if scheme.lower() == "bearer" else None,
    )


def _response(reply: Reply) -> web.Response:
    if isinstance(reply.body, str):
        return web.Response(status=reply.status, text=reply.body, headers=reply.headers)
    return web.Response(
        status=reply.status,
        body=_encode(reply.body),
        content_type="application/json",
        headers={"Cache-Control": "no-cache, private", **reply.headers},
    )


def _encode(value: Object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _drop(http: web.Request, *, reset: bool) -> _DroppedError:
    if http.transport is not None:
        if reset:
            connection = http.transport.get_extra_info("socket")
            # linger of zero seconds: closing sends a RST
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            http.transport.abort()
        else:
            http.transport.close()
    return _DroppedError()


async def _truncate(http: web.Request, reply: Reply | None) -> None:
    if reply is None or isinstance(reply.body, str):
        return
    whole = _encode(reply.body)
    response = web.StreamResponse(status=reply.status, headers={"Content-Type": "application/json"})
    response.content_length = len(whole)
    await response.prepare(http)
    await response.write(whole[: len(whole) // 2])
