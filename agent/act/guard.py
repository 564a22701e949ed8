"""The port guard: under hostNetwork a freed UI port stays with us until nothing leads to it any more.

A socket that is only bound does not keep a port from another JVM (all set SO_REUSEADDR); one that listens does.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Collection
from dataclasses import dataclass

from ..model import Listener

_BACKLOG = 16
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # struct linger: on, 0 s


@dataclass(slots=True)
class _Held:
    socket: socket.socket
    release: asyncio.TimerHandle | None = None


class Guard:
    """Holds the ports that `follow` names, and each port it named before for `settle` seconds more."""

    def __init__(self, settle: float) -> None:
        self._settle = settle
        self._held: dict[int, _Held] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def ports(self) -> frozenset[int]:
        """The ports that are held now."""
        return frozenset(self._held)

    @property
    def inodes(self) -> frozenset[int]:
        """Our own listening sockets."""
        return frozenset(os.fstat(held.socket.fileno()).st_ino for held in self._held.values())

    def follow(self, freed: Collection[Listener]) -> None:
        """Takes the ports of listeners that are gone, at their addresses; nothing routes to any other any more.

        Synchronous: when this returns, each port is ours or someone else was faster. Runs in the event loop.
        """
        ports = {one.port for one in freed}
        for port, held in self._held.items():
            if port in ports:
                if held.release is not None:
                    held.release.cancel()
                    held.release = None
            elif held.release is None:
                held.release = asyncio.get_running_loop().call_later(self._settle, self._let_go, port)
        for one in freed:
            if one.port not in self._held:
                self._take(one)

    async def run(self) -> None:
        """Until cancelled; then every port is given back."""
        try:
            await asyncio.Event().wait()
        finally:
            for port in tuple(self._held):
                self._let_go(port)

    async def released(self) -> None:
        """Returns when no port is held."""
        await self._empty.wait()

    def _take(self, freed: Listener) -> None:
        family = socket.AF_INET6 if ":" in freed.address else socket.AF_INET
        try:
            guard = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            return  # no file descriptor is left
        try:
            guard.setblocking(False)
            # Connections of the closed UI in TIME_WAIT would else refuse the port to us.
            guard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                guard.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            guard.bind((freed.address, freed.port))
            guard.listen(_BACKLOG)
        except OSError:
            # Someone was faster: the Service is being parked all the same, and the next fact tries again.
            guard.close()
            return
        self._held[freed.port] = _Held(guard)
        self._empty.clear()
        asyncio.get_running_loop().add_reader(guard.fileno(), _refuse, guard)

    def _let_go(self, port: int) -> None:
        held = self._held.pop(port)
        if held.release is not None:
            held.release.cancel()
        asyncio.get_running_loop().remove_reader(held.socket.fileno())
        held.socket.close()
        if not self._held:
            self._empty.set()


def _refuse(guard: socket.socket) -> None:
    """Resets who connects, as a closed port would; a client left in the backlog would wait instead."""
    for _ in range(_BACKLOG):
        try:
            client, _address = guard.accept()
        except OSError:
            return
        with client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
