"""The few rtnetlink requests that a namespace needs: link up, address, policy rule, local route.

Message layouts: linux/rtnetlink.h, linux/if_addr.h, linux/fib_rules.h. A request is answered by one
NLMSG_ERROR, whose code 0 means done.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LOOPBACK_INDEX = 1
TABLE_LOCAL = 255

_REQUEST_ACK = 0x1 | 0x4
_CREATE = 0x400
_EXCLUSIVE = 0x200
_ERROR = 2
_NEWLINK, _NEWADDR, _NEWROUTE, _NEWRULE, _DELRULE = 16, 20, 24, 32, 33
_IFF_UP = 1
_NODAD = 0x02
_SCOPE_HOST = 254
_ROUTE_LOCAL = 2
_PROTOCOL_STATIC = 4
_TO_TABLE = 1


def family_of(address: Address) -> int:
    """Return AF_INET or AF_INET6."""
    return int(socket.AF_INET if address.version == 4 else socket.AF_INET6)


def _attribute(kind: int, payload: bytes) -> bytes:
    length = 4 + len(payload)
    return struct.pack("=HH", length, kind) + payload + b"\0" * (-length % 4)


def _u32(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("=I", value))


def _request(connection: socket.socket, kind: int, flags: int, body: bytes) -> None:
    header = struct.pack("=IHHII", 16 + len(body), kind, _REQUEST_ACK | flags, 1, 0)
    connection.send(header + body)
    answer = connection.recv(8192)
    _, answered, _, _, _, code = struct.unpack_from("=IHHIIi", answer)
    if answered != _ERROR or code != 0:
        raise OSError(-code, f"rtnetlink request {kind}: {os.strerror(-code)}")


class RouteSocket:
    """One NETLINK_ROUTE socket of the calling thread's network namespace."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.settimeout(5)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def loopback_up(self) -> None:
        """Switch the loopback interface on, which gives it 127.0.0.1 and ::1."""
        _request(self._socket, _NEWLINK, 0, struct.pack("=BxHiII", 0, 0, LOOPBACK_INDEX, _IFF_UP, _IFF_UP))

    def add_address(self, address: Address) -> None:
        """Give the loopback interface one more address of global scope."""
        head = struct.pack("=BBBBi", family_of(address), address.max_prefixlen, _NODAD, 0, LOOPBACK_INDEX)
        attributes = _attribute(2, address.packed) + _attribute(1, address.packed)
        _request(self._socket, _NEWADDR, _CREATE | _EXCLUSIVE, head + attributes)

    def lower_local_table(self, family: int, priority: int) -> None:
        """Look the local table up at ``priority`` instead of 0, so that rules may stand before it."""
        head = struct.pack("=BBBBBBBBI", family, 0, 0, 0, TABLE_LOCAL, 0, 0, _TO_TABLE, 0)
        _request(self._socket, _NEWRULE, _CREATE, head + _u32(6, priority))
        _request(self._socket, _DELRULE, 0, head + _u32(6, 0))

    def route_uid(self, uid: int, table: int, priority: int, source: Address) -> None:
        """Send all that ``uid`` sends to this namespace itself, from ``source`` where it bound no other."""
        family = family_of(source)
        route = struct.pack(
            "=BBBBBBBBI", family, 0, 0, 0, table, _PROTOCOL_STATIC, _SCOPE_HOST, _ROUTE_LOCAL, 0
        )
        _request(
            self._socket,
            _NEWROUTE,
            _CREATE,
            route + _u32(4, LOOPBACK_INDEX) + _attribute(7, source.packed) + _u32(15, table),
        )
        rule = struct.pack("=BBBBBBBBI", family, 0, 0, 0, table, 0, 0, _TO_TABLE, 0)
        _request(
            self._socket,
            _NEWRULE,
            _CREATE,
            rule + _u32(6, priority) + _attribute(20, struct.pack("=II", uid, uid)),
        )
