"""The socket table and its watch, on real sockets of this process."""

from __future__ import annotations

import asyncio
import itertools
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent import times
from agent.model import Closed, Proof, Scanned, Scheme, Ui
from agent.sense import netlink
from agent.sense.sockets import SocketTable, SocketWatch, open_diag

from .senses import PATIENCE, Told, listening, running, serving

OTHER_UID = 185
ROOT = Path(__file__).parents[2]


@pytest.fixture
def table() -> Iterator[SocketTable]:
    made = SocketTable()
    yield made
    made.close()


def v6(address: str, *, only: bool, backlog: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
    made.bind((address, 0))
    made.listen(backlog)
    return made


def test_every_kind_of_listener_is_seen_as_it_is(table: SocketTable) -> None:
    with (
        v6("::", only=False, backlog=1) as dual,
        v6("::", only=True, backlog=2) as only,
        v6("::ffff:127.0.0.2", only=False, backlog=8) as mapped,
        socket.create_server(("0.0.0.0", 0), backlog=50) as v4,
    ):
        uid = OTHER_UID if os.geteuid() == 0 else os.getuid()
        os.fchown(v4.fileno(), uid, -1)
        made = (dual, only, mapped, v4)
        by_inode = {listener.inode: listener for listener in table.scan().listeners}
        found = [by_inode[os.fstat(one.fileno()).st_ino] for one in made]

        assert [listener.port for listener in found] == [one.getsockname()[1] for one in made]
    assert [listener.address for listener in found] == ["::", "::", "127.0.0.2", "0.0.0.0"]
    assert [listener.v6only for listener in found] == [False, True, False, False]
    assert [listener.backlog for listener in found] == [1, 2, 8, 50]
    assert [listener.uid for listener in found] == [os.getuid()] * 3 + [uid]
    assert [listener.wildcard for listener in found] == [True, True, False, True]
    assert [listener.loopback for listener in found] == [False, False, True, False]


def test_a_socket_that_only_connects_or_is_only_bound_is_no_listener(table: SocketTable) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with socket.create_connection(server.getsockname()) as client, server.accept()[0]:
            inodes = [os.fstat(one.fileno()).st_ino for one in (server, bound, client)]
            found = {listener.inode for listener in table.scan().listeners}

    assert [inode in found for inode in inodes] == [True, False, False]


def test_a_child_without_any_privilege_sees_sockets_of_other_processes() -> None:
    code = (
        "import os, sys\n"
        "from agent.sense.sockets import SocketTable, open_diag\n"
        "from agent.sense import netlink\n"
        "if os.geteuid() == 0:\n"
        "    os.setgroups([]); os.setresgid(185, 185, 185); os.setresuid(185, 185, 185)\n"
        "found = SocketTable().scan()\n"
        "open_diag(netlink.DESTROY_GROUPS).close()\n"
        "print(os.getuid(), found.degraded, [one.uid for one in found.listeners if one.port == int(sys.argv[1])])\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        argv = [sys.executable, "-c", code, str(server.getsockname()[1])]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    expected = OTHER_UID if os.geteuid() == 0 else os.getuid()
    assert done.stdout == f"{expected} False [{os.getuid()}]\n", done.stderr


def test_more_listeners_than_one_datagram_holds(table: SocketTable) -> None:
    made = [socket.create_server(("127.0.0.1", 0)) for _ in range(400)]
    try:
        ports = {one.getsockname()[1] for one in made}
        found = table.scan()
    finally:
        for one in made:
            one.close()

    assert {listener.port for listener in found.listeners} >= ports


def test_the_socket_stays_open_and_a_broken_one_is_replaced(table: SocketTable) -> None:
    table.scan()
    first = table._socket
    table.scan()
    assert first is not None
    assert table._socket is first

    first.close()

    assert table.scan().degraded  # from /proc, as long as it takes
    assert not table.scan().degraded
    assert table._socket is not first


def test_an_answer_to_an_older_request_is_not_taken(table: SocketTable) -> None:
    table.scan()
    diag = table._socket
    assert diag is not None
    diag.sendto(netlink.dump_request(socket.AF_INET, 99), (0, 0))

    # Linux refuses a second dump while one is unread; either way the table that is told is whole.
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert [one.port for one in table.scan().listeners if one.port == port] == [port]


def events(diag: socket.socket) -> list[netlink.Destroyed]:
    found: list[netlink.Destroyed] = []
    while True:
        try:
            found += netlink.destroyed(diag.recv(netlink.ANSWER_MAX))
        except BlockingIOError:
            return found


async def until_gone(diag: socket.socket, port: int) -> list[netlink.Destroyed]:
    """Everything announced up to the end of the listener on `port`."""
    found: list[netlink.Destroyed] = []
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE):
        while port not in {one.port for one in found}:
            ready = asyncio.Event()
            loop.add_reader(diag.fileno(), ready.set)
            await ready.wait()
            loop.remove_reader(diag.fileno())
            found += events(diag)
    return found


async def test_thousands_of_connections_are_kept_out_of_the_announcements() -> None:
    with open_diag(netlink.DESTROY_GROUPS) as diag:
        server = socket.create_server(("127.0.0.1", 0))
        port = server.getsockname()[1]
        used = {port}
        for _ in range(3000):
            with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0]:
                used.add(client.getsockname()[1])
        server.close()
        found = await until_gone(diag, port)

    assert [one for one in found if one.port in used] == [netlink.Destroyed(port, "127.0.0.1")]


async def test_announcements_come_in_the_order_of_the_ends() -> None:
    with open_diag(netlink.DESTROY_GROUPS) as diag:
        made = [
            v6("::", only=False, backlog=1),
            v6("::ffff:127.0.0.1", only=False, backlog=1),
            socket.socket(),
        ]
        made[2].bind(("127.0.0.1", 0))
        made[2].listen(1)
        ports = [one.getsockname()[1] for one in made]
        found: list[netlink.Destroyed] = []
        for one, port in zip(made, ports, strict=True):
            one.close()
            found += await until_gone(diag, port)

    own = [one for one in found if one.port in ports]
    assert [one.port for one in own] == ports
    assert [one.address for one in own] == ["::", "127.0.0.1", "127.0.0.1"]


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only announcements can be in time."""
    for name in ("SCAN_SEARCHING", "SCAN_FOUND"):
        monkeypatch.setattr(times, name, 10 * PATIENCE)


@pytest.mark.usefixtures("no_polling")
async def test_a_closed_listener_is_told_at_once_and_then_the_table() -> None:
    told = Told()
    with socket.create_server(("127.0.0.1", 0)) as other:
        gone = socket.create_server(("127.0.0.1", 0))
        port, inode = gone.getsockname()[1], os.fstat(gone.fileno()).st_ino
        async with running(SocketWatch(SocketTable(), told.tell, told.view).run()):
            await told.until(lambda: inode in told.world.listeners)
            gone.close()
            await told.until(
                lambda: inode not in told.world.listeners and isinstance(told.facts[-1], Scanned)
            )

        own = [fact for fact in told.facts if not isinstance(fact, Closed) or fact.port == port]
        closed = own.index(Closed(port, inode))
        after = own[closed + 1]
        assert isinstance(after, Scanned)
        ports = {listener.port for listener in after.listeners}
        assert other.getsockname()[1] in ports
        assert port not in ports
        assert own.count(Closed(port, inode)) == 1


@pytest.mark.usefixtures("no_polling")
async def test_another_socket_on_the_freed_port_is_another_listener() -> None:
    told = Told()
    first = socket.create_server(("127.0.0.1", 0))
    port, inode = first.getsockname()[1], os.fstat(first.fileno()).st_ino
    async with running(SocketWatch(SocketTable(), told.tell, told.view).run()):
        await told.appears(inode)
        first.close()
        with socket.create_server(("127.0.0.1", port)) as second:
            await told.vanishes(inode)
            await told.appears(os.fstat(second.fileno()).st_ino)

    assert Closed(port, inode) in told.facts


@pytest.mark.usefixtures("no_polling")
async def test_a_mistaken_announcement_is_not_told() -> None:
    told = Told()
    kept = socket.create_server(("127.0.0.1", 0))
    ends = socket.create_server(("127.0.0.1", 0))
    port = kept.getsockname()[1]
    with kept:
        async with running(SocketWatch(SocketTable(), told.tell, told.view).run()):
            await told.until(lambda: told.world.scanned)
            with socket.socket() as bound:
                bound.bind(("127.0.0.2", port))  # and never listens
            inode = os.fstat(ends.fileno()).st_ino
            ends.close()
            await told.until(lambda: inode not in told.world.listeners)

    assert port in {listener.port for listener in told.world.listeners.values()}
    assert port not in {fact.port for fact in told.facts if isinstance(fact, Closed)}


@pytest.mark.usefixtures("no_polling")
async def test_lost_announcements_cause_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(groups: int = 0) -> socket.socket:
        diag = open_diag(groups)
        if groups:
            diag.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        return diag

    monkeypatch.setattr("agent.sense.sockets.open_diag", narrow)
    told = Told()
    gone = socket.create_server(("127.0.0.1", 0))
    port, inode = gone.getsockname()[1], os.fstat(gone.fileno()).st_ino
    with open_diag(netlink.DESTROY_GROUPS) as observer:
        async with running(SocketWatch(SocketTable(), told.tell, told.view).run()):
            await told.appears(inode)
            for _ in range(100):  # more than the buffer holds, and none that is known
                with socket.socket() as bound:
                    bound.bind(("127.0.0.3", 0))
            gone.close()
            announced: set[int] = set()
            while port not in announced:  # the watch sleeps, and loses this one
                assert select.select([observer], [], [], PATIENCE)[0]
                announced |= {one.port for one in events(observer)}
            await told.vanishes(inode)

    assert Closed(port, inode) in told.facts


async def test_new_listeners_are_found_by_polling_and_nothing_is_told_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(times, "SCAN_SEARCHING", 0.005)
    told = Told()
    async with running(SocketWatch(SocketTable(), told.tell, told.view).run()):
        for _ in range(5):
            with socket.create_server(("127.0.0.1", 0)) as new:
                inode = os.fstat(new.fileno()).st_ino
                await told.appears(inode)
            await told.vanishes(inode)

    scans = [fact.listeners for fact in told.facts if isinstance(fact, Scanned)]
    assert len(scans) > 5
    assert all(now != before for before, now in itertools.pairwise(scans))


@pytest.mark.usefixtures("no_polling")
async def test_a_listener_that_only_the_hook_told_of_is_watched_too() -> None:
    told = Told()
    watch = SocketWatch(SocketTable(), told.tell, told.view)
    async with running(watch.run()):
        await told.until(lambda: told.world.scanned)
        async with serving(_nothing) as server:
            (new,) = listening(server.port)
            told.tell(Scanned(frozenset({*told.world.listeners.values(), new})))
        await told.until(lambda: new.inode not in told.world.listeners)

    assert Closed(new.port, new.inode) in told.facts


async def _nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


def test_the_pace_follows_what_is_known() -> None:
    told = Told()
    watch = SocketWatch(SocketTable(), told.tell, told.view)
    assert watch._pace() == times.SCAN_SEARCHING

    with socket.create_server(("127.0.0.1", 0)) as server:
        (listener,) = listening(server.getsockname()[1])
    proven = replace(told.world, proven=(Ui(listener, Scheme.HTTP, "spark-aaa", Proof.REST),))
    for world, pace in [
        (proven, times.SCAN_FOUND),
        (replace(told.world, ending="SIGTERM"), times.SCAN_FOUND),
        (replace(told.world, ended="driver container exited"), times.SCAN_FOUND),
        (replace(told.world, degraded=True), times.SCAN_PROC),
        (replace(proven, degraded=True), times.SCAN_PROC),
    ]:
        told.world = world
        assert watch._pace() == pace

    watch._cost = 0.1  # a big table
    assert watch._pace() == pytest.approx(10.0)


async def test_a_kernel_without_sock_diag_is_polled_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> socket.socket:
        raise OSError(93, "Protocol not supported")

    monkeypatch.setattr("agent.sense.sockets.open_diag", refuse)
    monkeypatch.setattr(times, "SCAN_PROC", 0.01)
    monkeypatch.setattr(times, "SCAN_SEARCHING", 0.01)
    monkeypatch.setattr(times, "SCAN_PROC_SHARE", 1.0)
    header = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    )
    line = (
        "   0: 00000000:0FC8 00000000:0000 0A 00000000:00000000 00:00000000 00000000   185        0 4711 1\n"
    )
    (tmp_path / "tcp").write_text(header)
    told = Told()
    async with running(SocketWatch(SocketTable(tmp_path), told.tell, told.view).run()):
        await told.until(lambda: told.world.scanned)
        assert told.world.degraded
        (tmp_path / "tcp").write_text(header + line)
        await told.until(lambda: 4711 in told.world.listeners)
        (tmp_path / "tcp").write_text(header)
        await told.until(lambda: 4711 not in told.world.listeners)

    assert [type(fact) for fact in told.facts] == [Scanned, Scanned, Closed, Scanned]
