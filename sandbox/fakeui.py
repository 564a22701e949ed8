"""A small server that answers as a Spark driver's UI does, for tests that need no driver behind it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator

from sandbox.netns import NetworkNamespace

# Jetty's backlog on a small Pod is min(acceptors, 8); the agent tells possible UIs by it.
BACKLOG = 8
REQUEST_SECONDS = 10.0
_ANY = "0.0.0.0"


class FakeUi:
    """A listening UI of one application. ``requests`` are the paths asked for, in order."""

    def __init__(self, application: str, name: str) -> None:
        self.application = application
        self.name = name
        self.port = 0
        self.requests: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close the connection."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                self.requests.append(path)
                writer.write(self._answer(path))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError, TimeoutError):
            pass  # a client that says nothing, or leaves, gets nothing
        finally:
            writer.close()

    def _answer(self, path: str) -> bytes:
        if path.startswith("/api/v1/applications"):
            attempt = {"startTimeEpoch": 1767225600000, "endTimeEpoch": -1, "completed": False}
            listed = [{"id": self.application, "name": self.name, "attempts": [attempt]}]
            return _response("200 OK", "application/json", json.dumps(listed))
        if path == "/jobs/":
            return _response("200 OK", "text/html", f"<html><title>{self.name} - Spark Jobs</title></html>")
        return _response("302 Found", "text/html", "", "Location: /jobs/\r\n")


def _response(status: str, kind: str, body: str, header: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind};charset=utf-8\r\nContent-Length: {len(body.encode())}\r\n"
        f"Cache-Control: no-cache, no-store, must-revalidate\r\n{header}Connection: close\r\n\r\n{body}"
    ).encode()


@contextlib.asynccontextmanager
async def fake_ui(
    namespace: NetworkNamespace | None,
    application: str,
    *,
    port: int = 0,
    uid: int | None = None,
    name: str = "sandbox",
) -> AsyncIterator[FakeUi]:
    """Listen in ``namespace`` as a socket of ``uid``'s (root may give it away) while the block lasts.

    The port closes at once when the block ends. Port 0 lets the kernel choose. Raises `OSError` when it is taken.
    """
    family, kind = socket.AF_INET, socket.SOCK_STREAM
    bound = namespace.make_socket(family, kind) if namespace is not None else socket.socket(family, kind)
    with bound:
        if uid is not None:
            os.fchown(bound.fileno(), uid, uid)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((_ANY, port))
        ui = FakeUi(application, name)
        ui.port = bound.getsockname()[1]
        server = await asyncio.start_server(ui.serve, sock=bound, backlog=BACKLOG)
        try:
            yield ui
        finally:
            server.close()
