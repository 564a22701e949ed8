"""/proc/net/tcp and tcp6 as text: the slow way to the listening sockets, for where there is no sock_diag."""

from __future__ import annotations

import re
import socket
import struct
from typing import Protocol

from ..model import Listener
from .netlink import text_v6

BLOCK = 65536
# Local address, remote address, state 0A, queues, timer, retransmits, uid, time-out, inode. The words of an
# address are in the machine's byte order (net/ipv4/tcp_ipv4.c, net/ipv6/tcp_ipv6.c).
_ROW = re.compile(
    rb"^ *\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A"
    rb" [0-9A-F]+:[0-9A-F]+ [0-9A-F]+:[0-9A-F]+ [0-9A-F]+ +(\d{1,10}) +\d+ (\d{1,20})\b",
    re.MULTILINE,
)


class Readable(Protocol):
    """A file open for bytes."""

    def read(self, size: int = -1, /) -> bytes | None:
        """At most `size` bytes, none at the end."""


def listeners(table: Readable) -> list[Listener]:
    """All rows in state LISTEN, without backlogs; other rows and what is no row are passed over.

    Read in blocks to the end. Linux prints listeners before connections, other kernels with a /proc of
    that form (gVisor) by age of the socket, so a first connection says nothing about the rest.
    """
    found: list[Listener] = []
    rest = b""
    while block := table.read(BLOCK):
        text = rest + block
        end = text.rfind(b"\n") + 1
        rest = text[end:][-BLOCK:]
        found.extend(_rows(text[:end]))
    found.extend(_rows(rest))
    return found


def _rows(text: bytes) -> list[Listener]:
    return [
        Listener(port=int(port, 16), address=_address(address), uid=int(uid), inode=int(inode))
        for address, port, uid, inode in _ROW.findall(text)
        if int(inode)
    ]


def _address(text: bytes) -> str:
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return socket.inet_ntop(socket.AF_INET, packed) if len(packed) == 4 else text_v6(packed)
