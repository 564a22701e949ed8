"""The HTTP endpoints: /startup, /liveness, /readiness, /status and /metrics."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import socket
from collections.abc import Callable
from http import HTTPStatus

from ..model import State, Status
from ..settings import Identity, Settings, split_address
from .http import Endpoints, Reply
from .logs import Log
from .metrics import CONTENT_TYPE
from .report import document, line

HEALTH_PORT = 4900
PATHS = ("/startup", "/liveness", "/readiness", "/status", "/metrics")
# Spark's Jetty listens with a backlog of 8 at most, and the search asks only such sockets: ours stays apart.
_BACKLOG = 64


def auto_address(identity: Identity) -> tuple[str, int]:
    """Where HEALTH_ADDRESS=auto listens: every address of the Pod, or under hostNetwork a free loopback port.

    kubelet asks the Pod's first address, which on an IPv6 cluster no IPv4 socket hears; `::` hears both.
    """
    if identity.host_network:
        return str(ipaddress.IPv4Address("127.0.0.1")), 0
    if any(":" in address for address in identity.ips):
        return str(ipaddress.IPv6Address(0)), HEALTH_PORT
    return str(ipaddress.IPv4Address(0)), HEALTH_PORT


class Web:
    """Serves the endpoints until cancelled. `run` never fails: without a port the agent does without them."""

    def __init__(
        self,
        settings: Settings,
        *,
        status: Callable[[], Status],
        since: Callable[[], str],
        alive: Callable[[], bool],
        metrics: Callable[[], str],
        log: Log,
    ) -> None:
        self._settings = settings
        self._status = status
        self._since = since
        self._alive = alive
        self._metrics = metrics
        self._log = log
        self._socket: socket.socket | None = None

    @property
    def address(self) -> str:
        """Where it listens, as `IP:port`, or "" where it does not."""
        if self._socket is None:
            return ""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def inodes(self) -> frozenset[int]:
        """The listening socket's own number, by which a scan knows it as ours."""
        return frozenset() if self._socket is None else frozenset({os.fstat(self._socket.fileno()).st_ino})

    async def run(self) -> None:
        """Listens and replies until cancelled; returns at once where it can't listen or must not."""
        wanted = self._settings.health_address
        if wanted == "off":
            return
        host, port = auto_address(self._settings.identity) if wanted == "auto" else split_address(wanted)
        try:
            sock = _listen(host, port)
        except OSError as error:
            self._log.warning(
                "no HTTP endpoints",
                address=f"{host}:{port}",
                error=error.strerror or str(error),
                remedy="set SPARK_UI_AGENT_HEALTH_ADDRESS to a free IP:port of this Pod, or to off",
            )
            return
        endpoints = Endpoints(self.reply)
        server = await asyncio.get_running_loop().create_server(endpoints, sock=sock, backlog=_BACKLOG)
        self._socket = sock
        self._log.info("HTTP endpoints", address=self.address)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._socket = None
            server.close()
            await endpoints.end()
            await server.wait_closed()

    def reply(self, path: str) -> Reply:
        """What `path` says right now."""
        status = self._status()
        match path:
            case "/startup":
                return _probe(
                    not (status.state is State.BLOCKED and status.reason == "settings"), line(status)
                )
            case "/liveness":
                alive = self._alive()
                return _probe(
                    alive, "the event loop turns" if alive else "the event loop has not turned lately"
                )
            case "/readiness":
                return _probe(status.state is State.PUBLISHED, line(status))
            case "/status":
                return Reply(HTTPStatus.OK, json.dumps(document(status, self._since())), "application/json")
            case "/metrics":
                return Reply(HTTPStatus.OK, self._metrics(), CONTENT_TYPE)
        return Reply(HTTPStatus.NOT_FOUND, f"no such path; there are {', '.join(PATHS)}")


def _probe(good: bool, reason: str) -> Reply:
    return Reply(HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE, reason)


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket; `::` takes IPv4 too.

    Raises:
        OSError: the port is taken, or the address is not one of this network namespace.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
