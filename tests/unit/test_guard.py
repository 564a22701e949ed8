"""The port guard on real sockets: a freed port stays ours, refuses fast, and is given back after the settling time."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from agent.act.guard import Guard
from agent.model import Listener

from .senses import PATIENCE, listening, running


def jvm(port: int, host: str = "::") -> socket.socket:
    """A listening socket as Java makes it: dual-stack, SO_REUSEADDR."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind((host, port))
        made.listen(1)
    except OSError:
        made.close()
        raise
    return made


def freed(host: str = "::") -> Listener:
    """A listener that has just gone, with a connection of its own left in TIME_WAIT."""
    with jvm(0, host) as server:
        port = server.getsockname()[1]
        (listener,) = listening(port)
        target = {"::": "127.0.0.1", "0.0.0.0": "127.0.0.1"}.get(host, host)
        with socket.create_connection((target, port)), server.accept()[0] as accepted:
            accepted.shutdown(socket.SHUT_WR)  # the server's side closes first, as Jetty does
    return listener


@contextlib.asynccontextmanager
async def guarding(settle: float) -> AsyncIterator[Guard]:
    guard = Guard(settle)
    async with running(guard.run()):
        await asyncio.sleep(0)  # its end is reached only by a task that has begun
        yield guard


@pytest.mark.parametrize("host", ["::", "0.0.0.0", "127.0.0.1", "::1"])
async def test_a_freed_port_goes_to_nobody_else(host: str) -> None:
    listener = freed(host)
    async with guarding(PATIENCE) as guard:
        guard.follow([listener])
        assert guard.ports == {listener.port}
        assert guard.inodes == {one.inode for one in listening(listener.port)}
        for other in (host, "::"):
            with pytest.raises(OSError, match="in use"):
                jvm(listener.port, other)
    jvm(listener.port, host).close()


async def test_who_connects_is_reset_and_does_not_wait() -> None:
    listener = freed()
    async with guarding(0) as guard:
        guard.follow([listener])
        for host in ["127.0.0.1", "::1"] * 40:  # more than the backlog
            async with asyncio.timeout(PATIENCE):
                try:
                    reader, writer = await asyncio.open_connection(host, listener.port)
                except ConnectionResetError:
                    continue
                with pytest.raises(ConnectionResetError):
                    await reader.readexactly(1)
                writer.close()


async def test_it_stays_for_the_settling_time_and_no_longer() -> None:
    listener = freed()
    async with guarding(0.05) as guard:
        guard.follow([listener])
        guard.follow([])
        assert guard.ports == {listener.port}
        async with asyncio.timeout(PATIENCE):
            await guard.released()
        assert guard.ports == frozenset()
        assert listening(listener.port) == []


async def test_told_the_same_again_it_stays() -> None:
    listener = freed()
    async with guarding(0.05) as guard:
        guard.follow([listener])
        inodes = guard.inodes
        guard.follow([])
        guard.follow([listener])
        guard.follow([listener])
        await asyncio.sleep(0.15)  # three settling times: what must not happen in them has no event
        assert guard.inodes == inodes


async def test_a_second_port_is_taken_while_the_first_settles() -> None:
    first, second = freed(), freed()
    async with guarding(0.05) as guard:
        guard.follow([first])
        guard.follow([second])
        assert guard.ports == {first.port, second.port}
        guard.follow([])
        async with asyncio.timeout(PATIENCE):
            await guard.released()


async def test_of_two_ports_each_is_let_go_by_itself() -> None:
    first, second = freed(), freed()
    async with guarding(0.05) as guard:
        guard.follow([first, second])
        assert guard.ports == {first.port, second.port}
        guard.follow([second])
        await asyncio.sleep(0.15)  # three settling times: what must not happen in them has no event
        assert guard.ports == {second.port}


async def test_a_port_that_someone_has_is_left_to_him_and_tried_again() -> None:
    listener = freed()
    async with guarding(0) as guard:
        with jvm(listener.port):
            guard.follow([listener])
            assert guard.ports == frozenset()
        guard.follow([listener])
        assert guard.ports == {listener.port}


async def test_nothing_is_held_after_the_end() -> None:
    listener = freed()
    async with guarding(PATIENCE) as guard:
        guard.follow([listener])
    assert guard.ports == frozenset()
    assert listening(listener.port) == []
