"""The kernel's socket tables by NETLINK_SOCK_DIAG: listening sockets, and events of sockets destroyed.

The harness's own reader, on purpose not the agent's: a fault in one must not hide in the other. Layouts from
linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h. Needs no privilege.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

NETLINK_SOCK_DIAG = 4
SOL_NETLINK = 270
NETLINK_ADD_MEMBERSHIP = 1
TCP_DESTROY_GROUPS = (1, 3)  # SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY
BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
DONE, ERROR = 3, 2  # NLMSG_DONE, NLMSG_ERROR
REQUEST_DUMP = 0x1 | 0x300  # NLM_F_REQUEST | NLM_F_DUMP
LISTEN_MASK = 1 << 10  # TCP_LISTEN
BUFFER = 1 << 16

_HEADER = struct.Struct("=IHHII")
# family, state, timer, retrans; ports (network order); addresses; interface; cookie
_HEAD = struct.Struct("=BBBB2s2s16s16sI8s")
# expires, rqueue, wqueue, uid, inode
_TAIL = struct.Struct("=IIIII")


@dataclass(frozen=True)
class Socket:
    """One TCP socket as the kernel tells it. ``cookie`` is unique among all sockets since boot.

    ``backlog`` is meaningful for a listening one (idiag_wqueue). ``peer_port`` is 0 for a socket that never
    had a peer, so a destroy event with a local port and ``peer_port`` 0 is a listener's end.
    """

    family: int
    address: str
    port: int
    peer_port: int
    uid: int
    inode: int
    backlog: int
    cookie: str


def _parse(message: memoryview) -> Socket:
    family, _, _, _, port, peer_port, source, _, _, cookie = _HEAD.unpack_from(message)
    _, _, backlog, uid, inode = _TAIL.unpack_from(message, _HEAD.size)
    raw = source[:4] if family == socket.AF_INET else source
    return Socket(
        family=family,
        address=socket.inet_ntop(family, raw),
        port=int.from_bytes(port, "big"),
        peer_port=int.from_bytes(peer_port, "big"),
        uid=uid,
        inode=inode,
        backlog=backlog,
        cookie=cookie.hex(),
    )


def _messages(datagram: bytes) -> Iterator[tuple[int, memoryview]]:
    view = memoryview(datagram)
    while len(view) >= _HEADER.size:
        length, kind, _, _, _ = _HEADER.unpack_from(view)
        yield kind, view[_HEADER.size : length]
        view = view[(length + 3) & ~3 :]


class ListenerTable:
    """Dumps of all listening TCP sockets of the network namespace in which it was made."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG)
        self._socket.settimeout(5)

    def dump(self) -> list[Socket]:
        """Return the listening sockets of both families. Raises `OSError` when the kernel refuses."""
        return [*self._dump(socket.AF_INET), *self._dump(socket.AF_INET6)]

    def _dump(self, family: int) -> Iterator[Socket]:
        # family, protocol, extensions, pad, states, and an all-zero sockid
        body = struct.pack("=BBBxI48x", family, socket.IPPROTO_TCP, 0, LISTEN_MASK)
        header = _HEADER.pack(_HEADER.size + len(body), BY_FAMILY, REQUEST_DUMP, 1, 0)
        self._socket.send(header + body)
        while True:
            for kind, payload in _messages(self._socket.recv(BUFFER)):
                if kind == DONE:
                    return
                if kind == ERROR:
                    code = -struct.unpack_from("=i", payload)[0]
                    raise OSError(code, f"sock_diag dump: {os.strerror(code)}")
                yield _parse(payload)


class DestroyEvents:
    """The kernel's announcements of destroyed TCP sockets, as a rule well within a millisecond of the close."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.bind((0, 0))
        for group in TCP_DESTROY_GROUPS:
            self._socket.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)

    def fileno(self) -> int:
        """Return the descriptor, for select."""
        return self._socket.fileno()

    def read(self) -> list[Socket]:
        """Return the sockets of the next datagram. Raises `OSError` (ENOBUFS) when events were lost."""
        return [
            _parse(payload) for kind, payload in _messages(self._socket.recv(BUFFER)) if kind == BY_FAMILY
        ]
