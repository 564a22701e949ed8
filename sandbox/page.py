"""One plain GET, into a namespace or not: no redirect, no proxy, no repetition, connection closed after it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.netns import NetworkNamespace


@dataclass(frozen=True)
class Page:
    """An answer: status, headers with names in lower case, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> object:
        """Return the decoded body. Raises `ValueError` where it is not JSON."""
        decoded: object = json.loads(self.body)
        return decoded


async def fetch(
    namespace: NetworkNamespace | None,
    port: int,
    path: str = "/",
    *,
    host: str = "127.0.0.1",
    scheme: str = "http",
    seconds: float = 10.0,
) -> Page:
    """GET ``path``. TLS is not verified: the page is asked for, not its identity.

    In a namespace the connection comes from its observer address. Raises `OSError` (refused, reset, timed out)
    or `http.client.HTTPException` (no HTTP).
    """
    if namespace is not None:
        connection = await namespace.connect(host, port)
    else:
        connection = await asyncio.to_thread(socket.create_connection, (host, port), seconds)
    return await asyncio.to_thread(_exchange, connection, (host, port), path, scheme, seconds)


def _exchange(raw: socket.socket, peer: tuple[str, int], path: str, scheme: str, seconds: float) -> Page:
    with raw:
        raw.settimeout(seconds)
        client = http.client.HTTPConnection(*peer)
        client.sock = _secured(raw) if scheme == "https" else raw
        try:
            client.request("GET", path, headers={"Connection": "close"})
            answer = client.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Page(answer.status, headers, answer.read())
        finally:
            client.close()


def _secured(raw: socket.socket) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(raw)
