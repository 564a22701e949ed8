"""The wire format of sock_diag: bytes in, listeners out, nothing but NetlinkError for what is malformed."""

from __future__ import annotations

import contextlib
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model import Listener
from agent.sense import netlink
from agent.sense.netlink import Destroyed, NetlinkError

SEQUENCE = 7
ANY = bytes(16)
MAPPED = bytes(10) + b"\xff\xff" + bytes([10, 1, 2, 3])


def message(body: bytes, *, kind: int = 20, flags: int = 2, sequence: int = SEQUENCE) -> bytes:
    padding = bytes(-len(body) % 4)
    return struct.pack("=IHHII", 16 + len(body), kind, flags, sequence, 99) + body + padding


def entry(
    port: int,
    *,
    family: int = socket.AF_INET6,
    address: bytes = ANY,
    state: int = 10,
    peer: int = 0,
    backlog: int = 1,
    uid: int = 185,
    inode: int = 4711,
    attributes: bytes = b"",
) -> bytes:
    ports = struct.pack("!HH", port, peer)
    ids = ports + address.ljust(16, b"\0") + ANY + bytes(4) + bytes(8)
    numbers = struct.pack("=IIIII", 0, 0, backlog, uid, inode)
    return struct.pack("=BBBB", family, state, 0, 0) + ids + numbers + attributes


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


DONE = message(bytes(4), kind=3)


def test_a_dump_of_both_families_gives_every_field() -> None:
    v4 = entry(
        4040, family=socket.AF_INET, address=bytes([10, 1, 2, 3]), backlog=4096, uid=0, inode=2**32 - 1
    )
    v6 = entry(65535, address=socket.inet_pton(socket.AF_INET6, "fd00::1"))

    found, last = netlink.listeners(message(v4) + message(v6), SEQUENCE)

    assert found == [
        Listener(port=4040, address="10.1.2.3", uid=0, inode=2**32 - 1, backlog=4096),
        Listener(port=65535, address="fd00::1", uid=185, inode=4711, backlog=1),
    ]
    assert not last
    assert netlink.listeners(message(v4) + DONE, SEQUENCE) == (found[:1], True)


@pytest.mark.parametrize(
    ("address", "text"), [(ANY, "::"), (MAPPED, "10.1.2.3"), (bytes(10) + b"\xff\xff" + bytes(4), "0.0.0.0")]
)
def test_mapped_addresses_are_shown_as_ipv4(address: bytes, text: str) -> None:
    found, _ = netlink.listeners(message(entry(4040, address=address)), SEQUENCE)

    assert [listener.address for listener in found] == [text]


@pytest.mark.parametrize(("value", "only"), [(b"\1", True), (b"\0", False)])
def test_v6only_is_read_behind_other_attributes(value: bytes, only: bool) -> None:
    attributes = (
        attribute(8, b"\0") + attribute(15, bytes(4)) + attribute(11, value) + attribute(22, bytes(2))
    )

    found, _ = netlink.listeners(message(entry(4040, attributes=attributes)), SEQUENCE)

    assert [listener.v6only for listener in found] == [only]


def test_what_is_no_listener_of_a_process_is_left_out() -> None:
    datagram = (
        message(entry(1, state=1))
        + message(entry(2, inode=0))
        + message(entry(3), sequence=SEQUENCE + 1)
        + message(b"", kind=1)
        + message(entry(5))
    )

    found, last = netlink.listeners(datagram, SEQUENCE)

    assert [listener.port for listener in found] == [5]
    assert not last


@pytest.mark.parametrize(
    "datagram",
    [
        message(struct.pack("=i", -2) + bytes(16), kind=2),
        message(b"", kind=2),
        message(entry(4040), flags=2 | 0x10),
        message(entry(4040))[:-1],
        message(entry(4040))[:10],
        message(entry(4040)[:-1]),
        message(entry(4040, family=1)),
        struct.pack("=IHHII", 15, 20, 2, SEQUENCE, 0),
        struct.pack("=IHHII", 0, 20, 2, SEQUENCE, 0),
    ],
    ids=["error", "bare-error", "interrupted", "cut", "header", "short", "family", "length", "zero"],
)
def test_errors_and_malformed_answers_are_one_error(datagram: bytes) -> None:
    with pytest.raises(NetlinkError):
        netlink.listeners(datagram, SEQUENCE)


def test_only_sockets_with_a_port_and_no_peer_were_listeners() -> None:
    datagram = (
        message(entry(4040, state=7))
        + message(entry(4041, state=7, peer=50000))
        + message(entry(0, state=7))
        + message(entry(4042, state=7, family=socket.AF_INET, address=bytes([127, 0, 0, 1])))
        + message(bytes(4), kind=3)
    )

    assert netlink.destroyed(datagram) == [Destroyed(4040, "::"), Destroyed(4042, "127.0.0.1")]


@given(
    st.one_of(
        st.binary(max_size=300),
        st.lists(st.builds(message, st.binary(max_size=120), kind=st.integers(0, 30))).map(b"".join),
        st.builds(
            lambda cut, tail: message(entry(4040))[:cut] + tail, st.integers(0, 96), st.binary(max_size=99)
        ),
        st.binary(max_size=60).map(lambda tail: message(entry(4040, attributes=tail))),
    )
)
def test_no_bytes_do_worse_than_one_error(datagram: bytes) -> None:
    for parse in (lambda data: netlink.listeners(data, SEQUENCE), netlink.destroyed):
        with contextlib.suppress(NetlinkError):
            assert parse(datagram) is not None


def test_a_request_asks_for_listeners_alone() -> None:
    request = netlink.dump_request(socket.AF_INET6, SEQUENCE)

    assert struct.unpack_from("=IHHII", request) == (len(request), 20, 0x301, SEQUENCE, 0)
    assert struct.unpack_from("=BBBBI", request, 16) == (socket.AF_INET6, socket.IPPROTO_TCP, 0, 0, 1 << 10)
    assert len(request) == 16 + 56
    assert not any(request[24:])
