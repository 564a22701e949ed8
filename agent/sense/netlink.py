"""sock_diag: the kernel's own list of sockets, and its word when one is destroyed. Wire format only.

Layouts are those of linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h: numbers in the machine's byte
order, ports and addresses in the network's. Neither the dump nor the destroy groups need a privilege, and both
show the sockets of every uid in the network namespace (tried on Linux 6.18 with uid 185 and no capabilities).
"""

from __future__ import annotations

import array
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ..model import Listener

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLMSG_NOOP, NLMSG_ERROR, NLMSG_DONE = 1, 2, 3
NLM_F_REQUEST, NLM_F_DUMP_INTR, NLM_F_DUMP = 0x1, 0x10, 0x300
TCP_LISTEN = 10
INET_DIAG_SKV6ONLY = 11
SO_ATTACH_FILTER = 26
# Bit n - 1 stands for multicast group n: SKNLGRP_INET_TCP_DESTROY is 1, SKNLGRP_INET6_TCP_DESTROY is 3.
DESTROY_GROUPS = 0b101
ANSWER_MAX = 65536  # a dump's datagram is 32 KiB at most

_HEADER = struct.Struct("=IHHII")  # length with header, type, flags, sequence, port id
_REQUEST = struct.Struct("=BBBxI48x")  # family, protocol, extensions, states; sockid left open
_SOCKET = struct.Struct("=BBBB2s2s16s16s4s8sIIIII")  # inet_diag_msg
_ATTRIBUTE = struct.Struct("=HH")
_MAPPED = bytes(10) + b"\xff\xff"


class NetlinkError(Exception):
    """The kernel refused, or what came is no whole answer: read the table again, or elsewhere."""


@dataclass(frozen=True, slots=True)
class Destroyed:
    """A destroyed TCP socket that had no peer. `address` as in Listener.

    Mostly a listener, yet a socket that was bound and never listened looks the same, and so does one whose
    connect was refused (the kernel takes its peer away again): the socket table has the last word.
    """

    port: int
    address: str


def dump_request(family: int, sequence: int) -> bytes:
    """Asks for all LISTEN sockets of AF_INET or AF_INET6 (AF_UNSPEC is answered with an error)."""
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << TCP_LISTEN)
    length = _HEADER.size + len(body)
    return _HEADER.pack(length, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, sequence, 0) + body


def listeners(datagram: bytes, sequence: int) -> tuple[list[Listener], bool]:
    """The listeners in one datagram of a dump, and whether it was the dump's last.

    Answers to other requests are skipped, and so are sockets without an inode: the kernel's own.

    Raises:
        NetlinkError: the kernel answered with an error, the table changed under the dump, or bytes are missing.
    """
    found: list[Listener] = []
    for kind, flags, number, body in _messages(datagram):
        if number != sequence:
            continue
        if kind == NLMSG_ERROR:
            code = -struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
            raise NetlinkError(f"sock_diag answered with error {code}")
        if flags & NLM_F_DUMP_INTR:
            raise NetlinkError("the socket table changed while it was read")
        if kind == NLMSG_DONE:
            return found, True
        if kind == SOCK_DIAG_BY_FAMILY:
            listener = _listener(body)
            if listener is not None:
                found.append(listener)
    return found, False


def destroyed(datagram: bytes) -> list[Destroyed]:
    """The sockets without a peer in one datagram of the destroy groups.

    Raises:
        NetlinkError: bytes are missing.
    """
    found: list[Destroyed] = []
    for kind, _, _, body in _messages(datagram):
        if kind != SOCK_DIAG_BY_FAMILY:
            continue
        _whole(body)
        family, _, _, _, source, peer, address, *_ = _SOCKET.unpack_from(body)
        port = int.from_bytes(source)
        if port and not int.from_bytes(peer):
            found.append(Destroyed(port, _text(family, address)))
    return found


def without_churn() -> tuple[bytes, array.array[int]]:
    """A classic BPF program for SO_ATTACH_FILTER: only destroyed sockets that have a port and no peer pass.

    It keeps the end of every ordinary connection from waking the process. The second value owns the memory
    that the first points to: keep it until the option is set.
    """
    load_half, jump_equal, give = 0x28, 0x15, 0x06
    first = _HEADER.size + 4  # of the ports, after family, state, timer, retransmits
    program = array.array(
        "B",
        b"".join(
            struct.pack("=HBBI", *step)
            for step in (
                (load_half, 0, 0, first + 2),
                (jump_equal, 0, 3, 0),  # a peer: drop
                (load_half, 0, 0, first),
                (jump_equal, 1, 0, 0),  # never had a port: drop
                (give, 0, 0, 0xFFFFFFFF),
                (give, 0, 0, 0),
            )
        ),
    )
    address, size = program.buffer_info()
    return struct.pack("HP", size // 8, address), program


def _messages(datagram: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, flags, sequence and body of each message."""
    offset = 0
    while offset < len(datagram):
        if len(datagram) - offset < _HEADER.size:
            raise NetlinkError(f"a message ends after {len(datagram) - offset} bytes of its header")
        length, kind, flags, sequence, _ = _HEADER.unpack_from(datagram, offset)
        if not _HEADER.size <= length <= len(datagram) - offset:
            raise NetlinkError(f"a message of {length} bytes, {len(datagram) - offset} came")
        if kind != NLMSG_NOOP:
            yield kind, flags, sequence, datagram[offset + _HEADER.size : offset + length]
        offset += (length + 3) & ~3


def _whole(body: bytes) -> None:
    if len(body) < _SOCKET.size:
        raise NetlinkError(f"a socket of {len(body)} bytes, {_SOCKET.size} are the least")


def _listener(body: bytes) -> Listener | None:
    _whole(body)
    family, state, _, _, source, _, address, _, _, _, _, _, backlog, uid, inode = _SOCKET.unpack_from(body)
    if state != TCP_LISTEN or not inode:
        return None
    return Listener(
        port=int.from_bytes(source),
        address=_text(family, address),
        uid=uid,
        inode=inode,
        backlog=backlog,
        v6only=family == socket.AF_INET6 and _v6only(body[_SOCKET.size :]),
    )


def _v6only(attributes: bytes) -> bool:
    offset = 0
    while len(attributes) - offset > _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(attributes, offset)
        if kind == INET_DIAG_SKV6ONLY:
            return attributes[offset + _ATTRIBUTE.size] != 0
        offset += max((length + 3) & ~3, _ATTRIBUTE.size)
    return False


def _text(family: int, address: bytes) -> str:
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, address[:4])
    if family != socket.AF_INET6:
        raise NetlinkError(f"a socket of family {family}, asked were {socket.AF_INET} and {socket.AF_INET6}")
    return text_v6(address)


def text_v6(address: bytes) -> str:
    """Sixteen bytes as text, IPv4-mapped ones as IPv4: Java binds `::ffff:a.b.c.d` for the IPv4 address."""
    if address[:12] == _MAPPED:
        return socket.inet_ntop(socket.AF_INET, address[12:])
    return socket.inet_ntop(socket.AF_INET6, address)
