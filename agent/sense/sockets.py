"""The listening sockets of this network namespace: read at once, and watched.

Everything here works with any uid and no capability.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from .. import times
from ..model import Closed, Fact, Listener, Scanned, World
from . import netlink, procnet

PROC = Path("/proc/net")
_DATAGRAMS_MAX = 10_000  # of one dump; 32 KiB hold about 280 sockets
_EVENTS_AT_ONCE = 256  # then the other work of the loop has its turn


class SocketTable:
    """Reads the table by sock_diag over one socket that stays open, else from /proc."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._socket: socket.socket | None = None

    def scan(self) -> Scanned:
        """The listening sockets now; blocks for 0.05 ms (sock_diag), or for 9 ms and more (/proc, `degraded`).

        Never raises. sock_diag is tried again at each scan; a file that /proc lacks counts as empty
        (tcp6 is missing where IPv6 is off).
        """
        try:
            return Scanned(frozenset(self._dump()))
        except (OSError, netlink.NetlinkError):
            self.close()
        found: list[Listener] = []
        for name in ("tcp", "tcp6"):
            try:
                with (self._proc / name).open("rb", buffering=0) as table:
                    found += procnet.listeners(table)
            except OSError:
                continue
        return Scanned(frozenset(found), degraded=True)

    def close(self) -> None:
        """Gives the socket back; the next scan opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _dump(self) -> Iterable[Listener]:
        if self._socket is None:
            self._socket = open_diag()
        found: list[Listener] = []
        for sequence, family in enumerate((socket.AF_INET, socket.AF_INET6), start=1):
            found += self._ask(self._socket, family, sequence)
        return found

    def _ask(self, diag: socket.socket, family: int, sequence: int) -> list[Listener]:
        diag.sendto(netlink.dump_request(family, sequence), (0, 0))
        found: list[Listener] = []
        for _ in range(_DATAGRAMS_MAX):
            # The kernel fills the answer as it is read, so there is never anything to wait for.
            datagram = diag.recv(netlink.ANSWER_MAX)
            part, last = netlink.listeners(datagram, sequence)
            found += part
            if last:
                return found
        raise netlink.NetlinkError(f"a dump of more than {_DATAGRAMS_MAX} datagrams")


def open_diag(groups: int = 0) -> socket.socket:
    """A non-blocking sock_diag socket, joined to the multicast `groups`.

    Raises:
        OSError: the kernel has no sock_diag (gVisor), or forbids it.
    """
    diag = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, netlink.NETLINK_SOCK_DIAG)
    try:
        diag.setblocking(False)
        if groups:
            program, memory = netlink.without_churn()
            diag.setsockopt(socket.SOL_SOCKET, netlink.SO_ATTACH_FILTER, program)
            del memory
        diag.bind((0, groups))
    except OSError:
        diag.close()
        raise
    return diag


class SocketWatch:
    """Tells `Closed` for each listener that is gone and then `Scanned`, when the table has changed.

    New listeners are found by scans alone, as there is no event for them: each SCAN_SEARCHING while nothing is
    proven, each SCAN_FOUND otherwise, and no faster than SCAN_PROC without sock_diag. The end of a listener is
    announced by the kernel within about 0.1 ms. As an announcement may be mistaken (see `netlink.Destroyed`), it
    only causes a scan, which takes another 0.05 ms; so do lost ones.
    """

    def __init__(self, table: SocketTable, tell: Callable[[Fact], None], view: Callable[[], World]) -> None:
        self._table = table
        self._tell = tell
        self._view = view
        self._cost = 0.0
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Watches until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            events = open_diag(netlink.DESTROY_GROUPS)
        except OSError:
            events = None
        try:
            if events is not None:
                loop.add_reader(events.fileno(), self._announcements, events)
            while True:
                self.look()
                try:
                    async with asyncio.timeout(self._pace()):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            if events is not None:
                loop.remove_reader(events.fileno())
                events.close()
            self._table.close()

    def look(self) -> None:
        """Scans now and tells what differs from what is known."""
        self._wake.clear()
        before = time.thread_time()
        now = self._table.scan()
        self._cost = time.thread_time() - before
        world = self._view()
        left = {listener.inode for listener in now.listeners}
        if world.scanned and world.degraded == now.degraded and world.listeners.keys() == left:
            return
        for inode, listener in world.listeners.items():
            if inode not in left:
                self._tell(Closed(listener.port, inode))
        self._tell(now)

    def _pace(self) -> float:
        world = self._view()
        settled = bool(world.proven) or world.ending is not None or world.ended is not None
        pace = times.SCAN_FOUND if settled else times.SCAN_SEARCHING
        if world.degraded:
            pace = max(pace, times.SCAN_PROC, self._cost / times.SCAN_PROC_SHARE)
        return pace

    def _announcements(self, events: socket.socket) -> None:
        """Takes what the kernel announced, and wakes the scan where a known listener may be meant."""
        known = {listener.port for listener in self._view().listeners.values()}
        for _ in range(_EVENTS_AT_ONCE):
            try:
                gone = netlink.destroyed(events.recv(netlink.ANSWER_MAX))
            except BlockingIOError:
                return
            except (OSError, netlink.NetlinkError):
                # ENOBUFS: announcements were lost. Whatever else: the table says what is true.
                self._wake.set()
                return
            if any(one.port in known for one in gone):
                self._wake.set()
