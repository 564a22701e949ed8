"""The harness's record of listening sockets, against sockets whose life the test knows."""

from __future__ import annotations

import socket
import time

import pytest

from sandbox.netns import NetworkNamespace
from sandbox.spark.portwatch import PortWatch, watch_ports
from sandbox.spark.trace import Listener

SECONDS = 30.0


async def _seen(watch: PortWatch, port: int) -> Listener:
    def find(listeners: dict[str, Listener]) -> Listener | None:
        found = [one for one in listeners.values() if one.socket.port == port and one.closed_at is None]
        return found[0] if found else None

    return await watch.until(find, SECONDS, f"port {port}")


async def _closed(watch: PortWatch, listener: Listener) -> int:
    return await watch.until(lambda _: listener.closed_at, SECONDS, "its close")


@pytest.mark.parametrize(("address", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
async def test_a_listener_is_seen_and_its_close_is_told(
    network: NetworkNamespace, address: str, family: int
) -> None:
    async with watch_ports(network) as watch:
        before = time.monotonic_ns()
        with network.make_socket(family, socket.SOCK_STREAM) as server:
            server.bind((address, 0))
            server.listen(7)
            listener = await _seen(watch, server.getsockname()[1])
            assert listener.closed_at is None
            closing = time.monotonic_ns()
        assert before < listener.seen_at < closing < await _closed(watch, listener)
    assert (listener.socket.address, listener.socket.family, listener.socket.backlog) == (address, family, 7)


async def test_the_end_of_a_connection_or_of_a_bound_socket_is_not_the_end_of_the_listener(
    network: NetworkNamespace,
) -> None:
    async with watch_ports(network) as watch:
        with network.listen("127.0.0.1", 0) as server:
            port = server.getsockname()[1]
            listener = await _seen(watch, port)
            (await network.connect("127.0.0.1", port)).close()
            server.accept()[0].close()
            with network.make_socket(socket.AF_INET, socket.SOCK_STREAM) as bound:
                bound.bind((network.address, port))
            # events come in order, so after this one those before it have been taken in
            with network.listen("127.0.0.1", 0) as other:
                marker = await _seen(watch, other.getsockname()[1])
            await _closed(watch, marker)
            assert listener.closed_at is None


async def test_the_next_listener_of_a_port_is_another_one(network: NetworkNamespace) -> None:
    async with watch_ports(network) as watch:
        with network.listen("127.0.0.1", 4040):
            first = await _seen(watch, 4040)
        first_closed = await _closed(watch, first)
        with network.listen("127.0.0.1", 4040):
            second = await _seen(watch, 4040)
    assert first.socket.cookie != second.socket.cookie
    assert first_closed < second.seen_at


async def test_what_listens_outside_the_namespace_is_not_seen(network: NetworkNamespace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        async with watch_ports(network) as watch:
            with network.listen("127.0.0.1", 0) as inside:
                found = await _seen(watch, inside.getsockname()[1])
            assert list(watch.listeners.values()) == [found]
        async with watch_ports(None) as watch:
            assert (await _seen(watch, outside.getsockname()[1])).socket.address == "127.0.0.1"


async def test_a_wait_in_vain_ends_and_names_what_was_awaited(network: NetworkNamespace) -> None:
    async with watch_ports(network) as watch:
        with pytest.raises(TimeoutError, match=r"port 1: not seen within 0 s"):
            await watch.until(lambda _: None, 0.01, "port 1")
