"""A network namespace for one test: loopback, one Pod address, gone with the process that made it.

It has no name: an open file descriptor and the processes inside keep it alive, so nothing is left behind
even after SIGKILL. The Pod address sits on the loopback interface, which needs no link device; the kernel
sends every packet to an own address through loopback anyway.

Who connects is told by the source address, which each packet carries: the harness's own connections come
from `observer`, those of a uid given to `mark_uid` from the address returned there; all others have the
source that the kernel chooses (127.0.0.1, ::1, or the Pod address).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sandbox import launch
from sandbox.enter import CLONE_NEWNET, set_network_namespace, unshare
from sandbox.rtnetlink import RouteSocket, family_of

T = TypeVar("T")

_NETWORK = ipaddress.IPv4Network("10.98.0.0/24")
_NETWORK6 = ipaddress.IPv6Network("fd98::/120")
_LOCAL_TABLE_PRIORITY = 1000
CONNECT_SECONDS = 10.0


class NamespaceError(Exception):
    """A network namespace cannot be made here. The message says what is missing and the remedy."""


def _in_thread(work: Callable[[], T]) -> T:
    """Run ``work`` in a thread that ends with it: a thread's namespace is its own, so none is restored."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


class NetworkNamespace:
    """A network namespace held by this process. Made by `create`, ended by `close`."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._addresses = [(_NETWORK[number], _NETWORK6[number]) for number in range(1, 255)]
        self.address = str(self._addresses[0][0])
        self.address6 = str(self._addresses[0][1])
        self.observer = str(self._addresses[1][0])
        self.observer6 = str(self._addresses[1][1])
        self._used = 2

    @classmethod
    @contextlib.contextmanager
    def create(cls) -> Iterator[NetworkNamespace]:
        """Make a namespace with loopback and the Pod address up.

        Raises `NamespaceError` without root (CAP_SYS_ADMIN).
        """

        def fresh() -> int:
            unshare(CLONE_NEWNET)
            return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

        try:
            namespace = cls(_in_thread(fresh))
        except PermissionError as error:
            raise NamespaceError(
                f"A network namespace needs root (CAP_SYS_ADMIN), and uid {os.getuid()} may not make one. "
                "Run as root, or leave out the tests that need one."
            ) from error
        try:
            namespace.run(namespace._set_up)
            yield namespace
        finally:
            namespace.close()

    def close(self) -> None:
        """Let go of the namespace: it vanishes when the last process inside has ended."""
        os.close(self.fd)

    def run(self, work: Callable[[], T]) -> T:
        """Call ``work`` in a thread inside the namespace and return its result or raise its error."""

        def inside() -> T:
            set_network_namespace(self.fd)
            return work()

        return _in_thread(inside)

    def make_socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """Make a socket that belongs to the namespace and is used from here like any other."""
        return self.run(lambda: socket.socket(family, kind, protocol))

    def listen(self, host: str, port: int) -> socket.socket:
        """Make a non-blocking listening IPv4 or IPv6 socket inside; port 0 lets the kernel choose."""
        server = self.make_socket(_family(host), socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setblocking(False)
        server.bind((host, port))
        server.listen(128)
        return server

    async def connect(self, host: str, port: int) -> socket.socket:
        """Connect from `observer` to an address inside. Raises `OSError` or, in the end, `TimeoutError`."""
        family = _family(host)
        client = self.make_socket(family, socket.SOCK_STREAM)
        try:
            client.setblocking(False)
            client.bind((self.observer if family == socket.AF_INET else self.observer6, 0))
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.get_running_loop().sock_connect(client, (host, port))
        except BaseException:
            client.close()
            raise
        return client

    async def popen(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        uid: int | None = None,
        gid: int | None = None,
        reads: Iterable[Path] = (),
        binds: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int | None = asyncio.subprocess.DEVNULL,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> asyncio.subprocess.Process:
        """Start a process inside; everything else as in `sandbox.launch.start`. End it by `launch.end`."""
        return await launch.start(
            argv,
            env=env,
            namespace_fd=self.fd,
            uid=uid,
            gid=gid,
            reads=reads,
            binds=binds,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )

    def mark_uid(self, uid: int) -> tuple[str, str]:
        """Give all connections that ``uid`` makes from now on a source address of their own (IPv4, IPv6).

        By policy routing on the uid of the socket (ip-rule(8), uidrange): what the uid sends stays inside
        the namespace. A socket that binds a source address by itself keeps that one.
        """
        number = self._used
        self._used += 1
        pair = self._addresses[number]

        def route() -> None:
            netlink = RouteSocket()
            try:
                for source in pair:
                    netlink.add_address(source)
                    netlink.route_uid(uid, table=100 + number, priority=number, source=source)
            finally:
                netlink.close()

        self.run(route)
        return str(pair[0]), str(pair[1])

    def _set_up(self) -> None:
        netlink = RouteSocket()
        try:
            netlink.loopback_up()
            for pair in self._addresses[: self._used]:
                for address in pair:
                    netlink.add_address(address)
            for family in (socket.AF_INET, socket.AF_INET6):
                netlink.lower_local_table(family, _LOCAL_TABLE_PRIORITY)
        finally:
            netlink.close()


def _family(host: str) -> int:
    return family_of(ipaddress.ip_address(host))
