"""The Unix socket by which `status`, `discover`, `wait` and `drain` reach the running agent.

One line of JSON in, one out: `{"command": "drain", "timeout": 10}` is answered by `{"ok": true, "result": {...}}` or
`{"ok": false, "error": "..."}`. Only the agent's own uid can connect; never over the network, where any Pod could park us.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from .. import times
from ..model import ApiError
from .client import LONGEST_PATH, too_long
from .logs import Log

Handler = Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]]

_LONGEST_LINE = 4096
_MOST_CONNECTIONS = 16
_LONGEST_COMMAND = 3600.0  # seconds that a caller may ask for


class RequestError(Exception):
    """The request can't be understood; the message goes back to the caller."""


class Control:
    """Answers commands until cancelled. `run` never fails: without a socket the agent does without it."""

    def __init__(self, path: Path, handlers: Mapping[str, Handler], log: Log) -> None:
        self._path = path
        self._handlers = handlers
        self._logger = log
        self._open = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def answered(self) -> None:
        """Returns when nobody waits for an answer: a `drain` in a preStop hook should see its own end."""
        await self._idle.wait()

    async def run(self) -> None:
        """Listens and answers until cancelled; returns at once where the socket can't be made."""
        try:
            sock, own = _listen(self._path)
        except OSError as error:
            self._logger.warning(
                "no control socket",
                path=str(self._path),
                error=error.strerror or str(error),
                remedy="mount a volume that the agent's uid may write at SPARK_UI_AGENT_DIR",
                lost="status, discover, wait and drain can't reach this agent",
            )
            return
        try:
            async with asyncio.TaskGroup() as group:
                await self._accept(sock, group)
        finally:
            sock.close()
            with contextlib.suppress(OSError):
                if self._path.stat().st_ino == own:  # not the one of an agent that came after us
                    self._path.unlink()

    async def _accept(self, sock: socket.socket, group: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                peer, _ = await loop.sock_accept(sock)
            except OSError:  # no file descriptor left: later there may be
                await asyncio.sleep(times.RETRY_MIN)
                continue
            if self._open >= _MOST_CONNECTIONS:
                peer.close()
                continue
            peer.setblocking(False)
            self._open += 1
            self._idle.clear()
            group.create_task(self._serve(peer))

    async def _serve(self, peer: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            with contextlib.suppress(OSError, TimeoutError):
                answer = await self._answer(peer)
                async with asyncio.timeout(times.CONTROL_REQUEST):
                    await loop.sock_sendall(peer, json.dumps(answer).encode() + b"\n")
        finally:
            self._open -= 1
            if not self._open:
                self._idle.set()
            peer.close()

    async def _answer(self, peer: socket.socket) -> Mapping[str, object]:
        try:
            async with asyncio.timeout(times.CONTROL_REQUEST):
                request = _parsed(await _line(peer))
            handler = self._handlers.get(str(request.get("command")))
            if handler is None:
                raise RequestError(f"no such command; there are {', '.join(sorted(self._handlers))}")
            async with asyncio.timeout(_seconds(request) + times.CONTROL_SPARE):
                return {"ok": True, "result": await handler(request)}
        except RequestError as error:
            return {"ok": False, "error": str(error)}
        except TimeoutError:
            return {"ok": False, "error": "the command took too long"}
        except ApiError as error:
            return {"ok": False, "error": str(error)}
        except Exception as error:
            # A fault in answering a person's question must not end the watch over the Service.
            self._logger.exception("control command failed")
            return {"ok": False, "error": f"a fault of the agent's: {type(error).__name__}: {error}"}


async def _line(peer: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    data = b""
    while b"\n" not in data:
        piece = await loop.sock_recv(peer, _LONGEST_LINE)
        data += piece
        if not piece or len(data) > _LONGEST_LINE:
            raise RequestError(f"a request is one line of at most {_LONGEST_LINE} bytes")
    return data.partition(b"\n")[0]


def _parsed(line: bytes) -> Mapping[str, object]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        request = None
    if not isinstance(request, dict):
        raise RequestError("a request is one JSON object on one line")
    return request


def _seconds(request: Mapping[str, object]) -> float:
    """How long the command may take, in seconds."""
    wanted = request.get("timeout", times.DISCOVER)
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not 0 <= wanted <= _LONGEST_COMMAND:
        raise RequestError(f"timeout is a number of seconds from 0 to {_LONGEST_COMMAND:g}")
    return float(wanted)


def _listen(path: Path) -> tuple[socket.socket, int]:
    """A listening socket at `path` and the number of its file; it takes the place of a stale one; never half made.

    Raises:
        OSError: the path is too long, or its directory is missing or may not be written.
    """
    if len(bytes(path)) > LONGEST_PATH:
        raise OSError(too_long(path))
    fresh = path.with_name(f".{os.getpid()}")  # never longer than `agent.sock`
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        fresh.unlink(missing_ok=True)
        sock.bind(bytes(fresh))
        fresh.chmod(0o600)
        sock.listen(_MOST_CONNECTIONS)
        sock.setblocking(False)
        own = fresh.stat().st_ino
        fresh.replace(path)
    except OSError:
        sock.close()
        raise
    return sock, own
