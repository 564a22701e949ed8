"""Network namespaces: apart from the host's network, entered by processes and sockets, gone without a trace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox import launch
from sandbox.capture import Capture, Connection, capture, most_at_once
from sandbox.netns import NetworkNamespace
from sandbox.relay import relay
from tests.sandbox.processes import survivors

MARKED, OTHER = 1185, 185
CONNECT = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as client:
    client.sendall(b"x" * int(sys.argv[3]))
    client.shutdown(socket.SHUT_WR)
    print(client.recv(100).decode())
"""


async def _run(network: NetworkNamespace, *argv: str, uid: int | None = None) -> tuple[int, str]:
    process = await network.popen(
        [sys.executable, "-I", "-c", *argv], env={}, uid=uid, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(30):
            output, _ = await process.communicate()
    finally:
        await launch.end(process)
    return process.returncode or 0, output.decode().strip()


@contextlib.asynccontextmanager
async def _counting_server(listening: socket.socket) -> AsyncIterator[int]:
    """Answer each client, at the end of what it sends, with its address and the number of bytes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = len(await reader.read(-1))
        writer.write(f"{writer.get_extra_info('peername')[0]} {sent}".encode())
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, sock=listening)
    try:
        yield listening.getsockname()[1]
    finally:
        server.close()


async def test_processes_inside_reach_each_address_and_nothing_outside(network: NetworkNamespace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        port = str(outside.getsockname()[1])
        code, output = await _run(network, CONNECT, "127.0.0.1", port, "0")
        assert code == 1
        assert "ConnectionRefusedError" in output

    async with _counting_server(network.listen("0.0.0.0", 0)) as inside:
        assert await _run(network, CONNECT, "127.0.0.1", str(inside), "3") == (0, "127.0.0.1 3")
        assert await _run(network, CONNECT, network.address, str(inside), "3") == (
            0,
            f"{network.address} 3",
        )
    async with _counting_server(network.listen("::", 0)) as inside:
        assert await _run(network, CONNECT, "::1", str(inside), "3") == (0, "::1 3")
        assert await _run(network, CONNECT, network.address6, str(inside), "3") == (
            0,
            f"{network.address6} 3",
        )


async def test_two_namespaces_with_the_same_address_do_not_meet(network: NetworkNamespace) -> None:
    with NetworkNamespace.create() as other:
        async with _counting_server(other.listen(other.address, 0)) as port:
            with pytest.raises(ConnectionRefusedError):
                await network.connect(network.address, port)


async def test_a_process_of_another_uid_has_no_capability_and_is_shown_what_it_has_to_reach(
    network: NetworkNamespace, tmp_path: Path
) -> None:
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    for folder in (shown, hidden):
        folder.mkdir()
        (folder / "file").write_text("read")
    tmp_path.chmod(0o700)
    passwd = tmp_path / "passwd"
    passwd.write_text(launch.passwd_with(OTHER, OTHER, shown))
    code = f"""
import os, pwd
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(os.getuid(), os.getgid(), os.getgroups(), int(status["CapEff"], 16), int(status["CapPrm"], 16))
print(open("{shown}/file").read(), os.path.exists("{hidden}"), pwd.getpwuid({OTHER}).pw_dir == "{shown}")
"""
    process = await network.popen(
        [sys.executable, "-I", "-c", code],
        env={},
        uid=OTHER,
        reads=[shown],
        binds={"/etc/passwd": str(passwd)},
        cwd=shown,
        stdout=subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        output, _ = await process.communicate()

    assert output.decode().splitlines() == [f"{OTHER} {OTHER} [] 0 0", "read False True"]
    assert (hidden / "file").read_text() == "read"


def test_nothing_is_left_when_the_maker_is_killed() -> None:
    maker = """
import asyncio, os, sys
from sandbox.netns import NetworkNamespace

async def main():
    with NetworkNamespace.create() as network:
        process = await network.popen(["sleep", "600"], env=dict(os.environ))
        print(process.pid, flush=True)
        await process.wait()

asyncio.run(main())
"""
    command = [sys.executable, "-c", maker]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=launch.REPOSITORY) as process:
        assert process.stdout is not None
        inside = int(process.stdout.readline())
        try:
            assert Path(f"/proc/{inside}/ns/net").exists()
        finally:
            process.send_signal(signal.SIGKILL)

    # no process, no descriptor and no name is left to hold the namespace
    assert survivors([inside]) == set()


def test_without_root_the_message_names_the_remedy() -> None:
    code = "from sandbox.netns import NetworkNamespace\nwith NetworkNamespace.create(): pass"

    async def attempt() -> str:
        process = await launch.start(
            [sys.executable, "-c", code],
            env={},
            uid=OTHER,
            reads=[launch.REPOSITORY],
            cwd=launch.REPOSITORY,
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(30):
            _, errors = await process.communicate()
        return errors.decode()

    if os.getuid() != 0:
        pytest.skip("becoming another user needs root")
    assert f"needs root (CAP_SYS_ADMIN), and uid {OTHER} may not make one. Run as root" in asyncio.run(
        attempt()
    )


async def test_relay_carries_both_ways_into_and_out_of_a_namespace(network: NetworkNamespace) -> None:
    host = socket.create_server(("127.0.0.1", 0))
    async with _counting_server(host) as port, relay(network, 0, "127.0.0.1", port) as outward:
        code, output = await _run(network, CONNECT, "127.0.0.1", str(outward.port), "100000")
        assert (code, output, outward.connections) == (0, "127.0.0.1 100000", 1)

    async with (
        _counting_server(network.listen("127.0.0.1", 0)) as port,
        relay(None, 0, "127.0.0.1", port, target_namespace=network) as inward,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", inward.port)
        writer.write(b"four")
        writer.write_eof()
        assert await reader.read(-1) == f"{network.observer} 4".encode()
        writer.close()
        await writer.wait_closed()


async def test_relay_to_a_closed_port_ends_the_connection(network: NetworkNamespace) -> None:
    async with relay(network, 0, "127.0.0.1", 1) as outward:
        assert await _run(network, CONNECT, "127.0.0.1", str(outward.port), "0") == (0, "")


async def test_relay_hands_a_reset_on(network: NetworkNamespace) -> None:
    def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    server = await asyncio.start_server(reset, sock=network.listen("127.0.0.1", 0))
    port = server.sockets[0].getsockname()[1]
    async with server, relay(None, 0, "127.0.0.1", port, target_namespace=network) as inward:
        reader, writer = await asyncio.open_connection("127.0.0.1", inward.port)
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)
        writer.close()


async def test_capture_tells_who_connected_where(network: NetworkNamespace) -> None:
    marked, marked6 = network.mark_uid(MARKED)
    async with (
        capture(network) as seen,
        _counting_server(network.listen("0.0.0.0", 0)) as port,
        _counting_server(network.listen("::1", 0)) as port6,
    ):
        assert await _run(network, CONNECT, "127.0.0.1", str(port), "5", uid=MARKED) == (0, f"{marked} 5")
        assert await _run(network, CONNECT, "::1", str(port6), "5", uid=MARKED) == (0, f"{marked6} 5")
        assert await _run(network, CONNECT, "127.0.0.1", str(port), "0", uid=OTHER) == (0, "127.0.0.1 0")
        refused = await _run(network, CONNECT, network.address, "1", "0", uid=MARKED)
        (await network.connect("127.0.0.1", port)).close()

        assert "ConnectionRefusedError" in refused[1]
        assert [_who(connection) for connection in seen.connections()] == [
            (marked, "127.0.0.1", port, True, 5),
            (marked6, "::1", port6, True, 5),
            ("127.0.0.1", "127.0.0.1", port, True, 0),
            (marked, network.address, 1, False, 0),
            (network.observer, "127.0.0.1", port, True, 0),
        ]
        assert _ordered(seen)


def _who(connection: Connection) -> tuple[str, str, int, bool, int]:
    return (connection.source, connection.destination, connection.port, connection.accepted, connection.sent)


def _ordered(seen: Capture) -> bool:
    instants = [at for one in seen.connections() for at in (one.opened_at, one.closed_at or 0)]
    return instants == sorted(instants)


def test_most_at_once_counts_overlapping_connections() -> None:
    def connection(opened: int, closed: int | None) -> Connection:
        return Connection("a", 1, "b", 2, opened_at=opened, closed_at=closed)

    assert most_at_once([]) == 0
    assert most_at_once([connection(1, 2), connection(2, 3), connection(3, None)]) == 1
    assert most_at_once([connection(1, 4), connection(2, 3), connection(3, 5)]) == 2
    assert most_at_once([connection(1, None), connection(2, None), connection(9, None)]) == 3
