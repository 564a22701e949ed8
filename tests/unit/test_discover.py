"""`discover` without a running agent: looks once, at real listeners."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.commands import main
from agent.commands.discover import look, table
from agent.model import Listener, Scanned
from agent.settings import PREFIX, load
from tests.unit.telling import ENV, made

OURS = b'[{"id": "spark-aaa", "name": "n", "attempts": [{"completed": false, "startTimeEpoch": 1}]}]'
OTHER = OURS.replace(b"spark-aaa", b"spark-bbb")


class Ui:
    """A UI that answers every request with the same JSON, and counts its callers."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.callers = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.bind(("0.0.0.0", 0))
        inode = os.fstat(self.socket.fileno()).st_ino
        self.listener = Listener(self.socket.getsockname()[1], "0.0.0.0", os.getuid(), inode, backlog=1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.callers += 1
        await reader.readuntil(b"\r\n\r\n")
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(self.body)}\r\n\r\n"
        )
        writer.write(head.encode() + self.body)
        writer.close()


@asynccontextmanager
async def uis(*bodies: bytes) -> AsyncIterator[list[Ui]]:
    found = [Ui(body) for body in bodies]
    servers = [await asyncio.start_server(ui.serve, sock=ui.socket, backlog=1) for ui in found]
    try:
        async with asyncio.timeout(30):
            yield found
    finally:
        for server in servers:
            server.close()


def scanned(*found: Ui) -> Scanned:
    return Scanned(frozenset(ui.listener for ui in found))


async def test_each_possible_ui_is_asked_once_and_ours_is_what_would_be_published() -> None:
    async with uis(OTHER, OURS) as (other, ours):
        found = await look(scanned(other, ours), made())
    listed = found["listeners"]
    assert isinstance(listed, list)
    taken = {entry["port"]: entry["taken"] for entry in listed}
    assert taken == {other.listener.port: "foreign", ours.listener.port: "ours"}
    assert (other.callers, ours.callers) == (1, 1)
    assert table(found).endswith(
        f"to publish: http port {ours.listener.port} of application spark-aaa, proven by rest"
    )


async def test_one_that_is_still_starting_is_not_asked_again() -> None:
    async with uis(b"[]") as (starting,):
        found = await look(scanned(starting), made())
    assert starting.callers == 1
    assert "nothing to publish: port" in table(found)


async def test_another_users_listener_is_not_asked() -> None:
    async with uis(OURS) as (ui,):
        settings = made(DRIVER_UID=str(os.getuid() + 1))
        found = await look(scanned(ui), settings)
    assert ui.callers == 0
    assert "nothing to publish" in table(found)


async def test_the_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.times.DISCOVER", 0.0)
    async with uis(OURS) as (ui,):
        await look(scanned(ui), made())
    assert ui.callers == 0


def test_the_command_says_that_it_looks_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A uid that owns nothing here: no listener of this machine is asked.
    env = {**ENV, PREFIX + "DIR": str(tmp_path), PREFIX + "DRIVER_UID": "4294967294"}
    assert main(["discover", "--json"], env) == 0
    out, err = capsys.readouterr()
    assert err == "spark-ui-agent: no running agent: looking once, without the log hook\n"
    found = json.loads(out)
    assert found["publish"]["port"] is None
    assert {entry["taken"] for entry in found["listeners"]} <= {"passed-over"}
    assert load(env).driver_uid == 4294967294
