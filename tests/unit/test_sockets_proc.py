"""/proc/net/tcp and tcp6 as text."""

from __future__ import annotations

import io
import socket
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent.model import Listener
from agent.sense import procnet, sockets
from agent.sense.sockets import SocketTable

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def row(local: str, state: str = "0A", uid: int = 185, inode: int = 4711, number: int = 0) -> str:
    remote = "0" * (len(local) - 5) + ":0000"
    text = f"{number:4d}: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 {uid:5d}        0 {inode} 1"
    return f"{text:<149}\n"


def parse(*rows: str) -> list[Listener]:
    return procnet.listeners(io.BytesIO((HEADER + "".join(rows)).encode()))


def degraded(folder: Path) -> SocketTable:
    class Bare(SocketTable):
        """A kernel without sock_diag."""

        def _dump(self) -> list[Listener]:
            raise OSError(93, "Protocol not supported")

    return Bare(folder)


def test_a_dual_stack_listener_stands_in_tcp6_alone(tmp_path: Path) -> None:
    (tmp_path / "tcp").write_text(HEADER)
    (tmp_path / "tcp6").write_text(HEADER + row("0" * 32 + ":0FC8"))

    found = degraded(tmp_path).scan()

    assert found.degraded
    assert found.listeners == {Listener(port=4040, address="::", uid=185, inode=4711)}


def test_a_mapped_address_is_ipv4() -> None:
    assert parse(row("0000000000000000FFFF00000302010A:0FC8")) == [
        Listener(port=4040, address="10.1.2.3", uid=185, inode=4711)
    ]
    assert parse(row("0302010A:0FC8", uid=4294967295)) == [
        Listener(port=4040, address="10.1.2.3", uid=4294967295, inode=4711)
    ]


def test_missing_files_are_no_error(tmp_path: Path) -> None:
    assert degraded(tmp_path).scan().listeners == frozenset()

    (tmp_path / "tcp").write_text(HEADER + row("0100007F:0FC8"))

    assert [listener.address for listener in degraded(tmp_path).scan().listeners] == ["127.0.0.1"]


def test_a_listener_behind_connections_is_found() -> None:
    found = parse(row("0302010A:1F90", state="01"), row("0302010A:0FC8", number=1))

    assert [listener.port for listener in found] == [4040]


def test_other_states_and_sockets_without_inode_are_left_out() -> None:
    assert parse(row("0302010A:0FC8", state="01"), row("0302010A:0FC9", inode=0)) == []


class Dripping(io.BytesIO):
    """Gives at most a few bytes at a time, as a file may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 7, 7))


def test_rows_may_be_cut_anywhere() -> None:
    text = HEADER + row("0302010A:0FC8") + row("0302010A:0FC9", number=1).rstrip("\n")

    assert [listener.port for listener in procnet.listeners(Dripping(text.encode()))] == [4040, 4041]


def test_a_big_table_is_streamed(tmp_path: Path) -> None:
    rows = (row("0302010A:1F90", state="01", number=number) for number in range(120_000))
    with (tmp_path / "tcp").open("w") as table:
        table.write(HEADER)
        table.writelines(rows)
        table.write(row("0302010A:0FC8", number=120_000))

    class Counted(io.FileIO):
        most = 0

        def read(self, size: int | None = -1, /) -> bytes:
            block = super().read(size)
            Counted.most = max(Counted.most, len(block))
            return block

    counted = Counted(tmp_path / "tcp")
    try:
        found = procnet.listeners(counted)
    finally:
        counted.close()

    assert [listener.port for listener in found] == [4040]
    assert Counted.most <= procnet.BLOCK


@given(st.one_of(st.binary(max_size=400), st.text(" :0A1F\n", max_size=400).map(str.encode)))
def test_no_text_raises(text: bytes) -> None:
    found = procnet.listeners(io.BytesIO(text + b"\n" + row("0302010A:0FC8").encode()))

    assert found[-1].port == 4040


def test_it_agrees_with_sock_diag() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as v4,
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as dual,
    ):
        ports = {v4.getsockname()[1], dual.getsockname()[1]}
        table, proc = SocketTable(), degraded(sockets.PROC)
        seen = [
            {(one.port, one.address, one.uid, one.inode) for one in found.listeners if one.port in ports}
            for found in (table.scan(), proc.scan())
        ]
        table.close()

    assert len(seen[0]) == 2
    assert seen[0] == seen[1]
