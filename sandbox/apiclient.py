"""A small Kubernetes API client for sandbox and tests: plain paths, dict bodies, every status handed back.

It shares nothing with the agent's own client, so a fault in one cannot hide in the other. The same client
talks to the real kube-apiserver and to the stand-in.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

# A Kubernetes object as decoded from JSON. Its depth is the API's, so the leaves stay untyped.
Object = dict[str, Any]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

DEFAULT_SECONDS = 10.0
# One watch event is one line, and etcd limits an object to 1.5 MiB.
LONGEST_LINE = 4 * 1024 * 1024


@dataclass(frozen=True)
class ApiResponse:
    """One answer. ``body`` is the decoded JSON object, empty where there is none (``/readyz``: ``ok``)."""

    status: int
    body: Object
    headers: Mapping[str, str]
    text: str

    def ok(self) -> Object:
        """Return the body of a 2xx answer; raise `ApiError` for any other."""
        if not 200 <= self.status < 300:
            raise ApiError(self)
        return self.body


class ApiError(Exception):
    """An answer outside 2xx where the caller asked for success. ``response`` is that answer."""

    def __init__(self, response: ApiResponse) -> None:
        super().__init__(f"API answered {response.status}: {response.body.get('message', response.text)}")
        self.response = response


@dataclass(frozen=True)
class WatchEvent:
    """One line of a watch: ``type`` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR (with a Status)."""

    type: str
    object: Object


@dataclass(frozen=True)
class Access:
    """Where an API server is and who asks: by client certificate, by bearer token, or as nobody."""

    url: str
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    token: str | None = field(default=None, repr=False)


class ApiClient:
    """Requests and watches against one API server.

    Used as an async context manager it keeps its connections; without, each call opens one of its own, so
    that a client made once can be used from any event loop. Redirects are not followed and proxy settings of
    the environment are ignored. No status is retried; a GET or DELETE whose connection breaks is repeated
    once by aiohttp, other methods are not.
    """

    def __init__(self, access: Access) -> None:
        """Load the certificates that ``access`` names; raise OSError or ssl.SSLError where that fails."""
        self.access = access
        self._tls = _tls(access, with_cert=True)
        self._tls_without_cert = _tls(access, with_cert=False)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = _new_session()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str | None = None,
        params: Mapping[str, str] | None = None,
        token: str | None = None,
        within: float = DEFAULT_SECONDS,
    ) -> ApiResponse:
        """Send one request and return its answer, whatever the status.

        ``body`` is sent as JSON, or as it is when it is bytes; ``content_type`` defaults to merge-patch for
        PATCH and to JSON otherwise. ``token`` asks with that token instead of the client's own identity.
        ``within`` (seconds) bounds the whole call: TimeoutError. A broken connection raises
        `aiohttp.ClientError`.
        """
        headers = {}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers["Content-Type"] = content_type or (MERGE_PATCH if method.upper() == "PATCH" else JSON)
        async with (
            asyncio.timeout(within),
            self._exchange(method, path, params, token=token, headers=headers, data=data) as response,
        ):
            return await _answer(response)

    @contextlib.asynccontextmanager
    async def watch(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        *,
        token: str | None = None,
        within: float = DEFAULT_SECONDS,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Open a watch: ``async with api.watch(path) as events: async for event in events: ...``.

        Inside the block the server has accepted the watch; the iterator ends when the server ends it. Raises
        `ApiError` when it is refused, and TimeoutError when the block is not left ``within`` seconds.
        """
        query = {**(params or {}), "watch": "true"}
        async with asyncio.timeout(within), self._exchange("GET", path, query, token=token) as response:
            if response.status != 200:
                raise ApiError(await _answer(response))
            yield _events(response)

    @contextlib.asynccontextmanager
    async def _exchange(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        *,
        token: str | None,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        # kube-apiserver takes a client certificate before a bearer token: a token needs a connection without
        tls = self._tls if token is None else self._tls_without_cert
        bearer = token if token is not None else self.access.token
        sent = dict(headers or {})
        if bearer is not None:
            sent["Authorization"] = f"Bearer {bearer}"
        async with (
            contextlib.nullcontext(self._session) if self._session is not None else _new_session() as session,
            session.request(
                method,
                self.access.url + path,
                params=params,
                data=data,
                headers=sent,
                ssl=tls if tls is not None else True,
                allow_redirects=False,
                read_bufsize=LONGEST_LINE,
            ) as response,
        ):
            try:
                yield response
            finally:
                await _cut(response)


def _tls(access: Access, *, with_cert: bool) -> ssl.SSLContext | None:
    if not access.url.startswith("https:"):
        return None
    context = ssl.create_default_context(cafile=access.ca_file)
    if with_cert and access.cert_file is not None:
        context.load_cert_chain(access.cert_file, access.key_file)
    return context


def _new_session() -> aiohttp.ClientSession:
    # every call has its own deadline, so the session's total of five minutes would only cut long watches
    return aiohttp.ClientSession(
        trust_env=False, timeout=aiohttp.ClientTimeout(), cookie_jar=aiohttp.DummyCookieJar()
    )


async def _cut(response: aiohttp.ClientResponse) -> None:
    # An answer that is not read to its end (a watch) leaves a connection whose TLS farewell would outlast us.
    protocol = response.connection.protocol if response.connection is not None else None
    if protocol is not None:
        closed = protocol.closed
        protocol.abort()
        if closed is not None:
            await closed


async def _answer(response: aiohttp.ClientResponse) -> ApiResponse:
    text = await response.text(errors="replace")
    body: object = None
    with contextlib.suppress(ValueError):
        body = json.loads(text)
    return ApiResponse(response.status, body if isinstance(body, dict) else {}, response.headers, text)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[WatchEvent]:
    while line := await response.content.readline():
        event = json.loads(line)
        yield WatchEvent(event["type"], event["object"])
