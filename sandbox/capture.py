"""Every TCP connection of a namespace, from a packet capture: who connected where, when, and what it sent.

Needs no polling and misses no short-lived connection. Who connected is in the source address (see
`sandbox.netns`): run the process in question with a uid of its own, `mark_uid` it before, and all its connections carry
the marked address; nothing has to be looked up afterwards, when the socket may be gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from sandbox.netns import NetworkNamespace

_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_BUFFER = 32 << 20
# enough for the longest IPv4 or IPv6 header and the fixed part of TCP's
_SNAP = 96
_FIN, _SYN, _RST, _ACK = 0x01, 0x02, 0x04, 0x10

Flow = tuple[str, int, str, int]


class CaptureError(Exception):
    """The kernel dropped packets: what was captured proves nothing."""


@dataclass
class Connection:
    """One attempt to connect. Instants are CLOCK_MONOTONIC in nanoseconds, from the kernel's packet times.

    ``accepted``: the SYN was answered by SYN-ACK. ``segments`` and ``sent``: segments with data, and bytes,
    from the client. ``closed_at``: first FIN or RST of either side.
    """

    source: str
    source_port: int
    destination: str
    port: int
    opened_at: int
    accepted: bool = False
    segments: int = 0
    sent: int = 0
    closed_at: int | None = None


@dataclass(frozen=True)
class _Packet:
    flow: Flow
    flags: int
    payload: int


def _parse(packet: bytes) -> _Packet | None:
    """Parse an IP packet's start; None where it is not TCP (or IPv6 with extension headers)."""
    version = packet[0] >> 4
    if version == 4:
        start = (packet[0] & 0x0F) * 4
        protocol, length = packet[9], int.from_bytes(packet[2:4], "big")
        addresses = packet[12:16], packet[16:20]
    else:
        start = 40
        protocol, length = packet[6], start + int.from_bytes(packet[4:6], "big")
        addresses = packet[8:24], packet[24:40]
    if protocol != socket.IPPROTO_TCP:
        return None
    source_port, port, offset, flags = struct.unpack_from("!HH8xBB", packet, start)
    source, destination = (str(ipaddress.ip_address(raw)) for raw in addresses)
    payload = length - start - (offset >> 4) * 4
    return _Packet((source, source_port, destination, port), flags, payload)


class Capture:
    """A running capture; made by `capture`."""

    def __init__(self, packets: socket.socket) -> None:
        self._packets = packets
        self._connections: list[Connection] = []
        self._flows: dict[Flow, Connection] = {}

    def connections(self) -> list[Connection]:
        """Return all connections so far, in order. Raises `CaptureError` when packets were lost."""
        self.drain()
        raw = self._packets.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        _, dropped = struct.unpack("=II", raw)
        if dropped:
            raise CaptureError(
                f"the kernel dropped {dropped} packets: keep the event loop free, or capture less"
            )
        return list(self._connections)

    def drain(self) -> None:
        """Take in all that the kernel holds."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data, ancillary, _, address = self._packets.recvmsg(_SNAP, 64)
                # a packet through loopback is seen twice, when it leaves and when it arrives
                if address[2] != socket.PACKET_OUTGOING or address[1] not in {0x0800, 0x86DD}:
                    continue
                packet = _parse(data)
                if packet is not None:
                    self._take(packet, _instant(ancillary))

    def _take(self, packet: _Packet, at: int) -> None:
        flow, backward = packet.flow, (*packet.flow[2:], *packet.flow[:2])
        if packet.flags & (_SYN | _ACK) == _SYN:
            known = self._flows.get(flow)
            # else a SYN sent again
            if known is None or known.closed_at is not None:
                self._flows[flow] = Connection(*flow, opened_at=at)
                self._connections.append(self._flows[flow])
            return
        if flow in self._flows:
            connection = self._flows[flow]
            connection.segments += packet.payload > 0
            connection.sent += packet.payload
        elif backward in self._flows:
            connection = self._flows[backward]
            connection.accepted |= bool(packet.flags & _SYN)
        else:
            return
        if packet.flags & (_FIN | _RST) and connection.closed_at is None:
            connection.closed_at = at


def _instant(ancillary: Iterable[tuple[int, int, bytes]]) -> int:
    """Return the kernel's time of a packet, turned from CLOCK_REALTIME to CLOCK_MONOTONIC."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("=qq", data)
            return int(seconds * 10**9 + nanoseconds - time.time_ns() + time.monotonic_ns())
    raise CaptureError("a packet without a time")


def most_at_once(connections: Iterable[Connection]) -> int:
    """Return how many of ``connections`` were open at the same time at the most."""
    changes: list[tuple[int, int]] = []
    for connection in connections:
        changes.append((connection.opened_at, 1))
        if connection.closed_at is not None:
            changes.append((connection.closed_at, -1))
    most = current = 0
    for _, change in sorted(changes):
        current += change
        most = max(most, current)
    return most


@contextlib.asynccontextmanager
async def capture(namespace: NetworkNamespace) -> AsyncIterator[Capture]:
    """Capture the namespace's TCP connections while the block lasts (root: CAP_NET_RAW)."""
    with namespace.make_socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_ALL)) as packets:
        packets.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        packets.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        packets.setblocking(False)
        running = Capture(packets)
        loop = asyncio.get_running_loop()
        loop.add_reader(packets, running.drain)
        try:
            yield running
        finally:
            loop.remove_reader(packets)
