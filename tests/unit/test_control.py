"""The Unix socket: the server and its client, over a real socket, with good and hostile callers."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from agent.model import ForbiddenError
from agent.tell import logs
from agent.tell.client import NoAgentError, RefusedError, ask
from agent.tell.control import Control
from tests.unit.telling import running, turns

DEADLINE = 10.0


class Handlers:
    """Commands that the tests call; `drain` waits until it is let go."""

    def __init__(self) -> None:
        self.requests: list[Mapping[str, object]] = []
        self.draining = asyncio.Event()
        self.gone = asyncio.Event()

    async def status(self, request: Mapping[str, object]) -> Mapping[str, object]:
        self.requests.append(request)
        return {"state": "published", "port": 40123}

    async def drain(self, request: Mapping[str, object]) -> Mapping[str, object]:
        self.draining.set()
        await self.gone.wait()
        return {"gone": True}

    async def forbidden(self, request: Mapping[str, object]) -> Mapping[str, object]:
        raise ForbiddenError(403, "Forbidden", "services is forbidden")

    async def defect(self, request: Mapping[str, object]) -> Mapping[str, object]:
        raise ZeroDivisionError("x")

    async def slow(self, request: Mapping[str, object]) -> Mapping[str, object]:
        raise TimeoutError


@asynccontextmanager
async def control(path: Path) -> AsyncIterator[tuple[Handlers, io.StringIO]]:
    handlers, out = Handlers(), io.StringIO()
    known = {name: getattr(handlers, name) for name in ("status", "drain", "forbidden", "defect", "slow")}
    part = Control(path, known, logs.configure("info", "json", out))
    async with running(part.run()), asyncio.timeout(DEADLINE):
        await turns(5)
        yield handlers, out


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.sock"


async def call(path: Path, command: str, **arguments: object) -> dict[str, object]:
    return await asyncio.to_thread(ask, path, command, DEADLINE, **arguments)


async def raw(path: Path, data: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(data)
        writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


async def test_a_command_and_its_answer(path: Path) -> None:
    async with control(path) as (handlers, out):
        assert await call(path, "status", verbose=True) == {"state": "published", "port": 40123}
        assert handlers.requests == [{"command": "status", "verbose": True}]
        assert out.getvalue() == ""


async def test_only_the_owner_may_connect_and_the_socket_is_removed_at_the_end(path: Path) -> None:
    async with control(path):
        found = path.stat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o600
    assert list(path.parent.iterdir()) == []


async def test_a_long_command_keeps_no_other_waiting(path: Path) -> None:
    async with control(path) as (handlers, _):
        draining = asyncio.create_task(call(path, "drain", timeout=5))
        await handlers.draining.wait()
        assert (await call(path, "status"))["port"] == 40123
        handlers.gone.set()
        assert await draining == {"gone": True}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("nothing", "no such command; there are defect, drain, forbidden, slow, status"),
        ("forbidden", "403 Forbidden: services is forbidden"),
        ("slow", "the command took too long"),
        ("defect", "a fault of the agent's: ZeroDivisionError: x"),
    ],
)
async def test_refusals_reach_the_caller_and_the_agent_goes_on(
    path: Path, command: str, message: str
) -> None:
    async with control(path) as (_, out):
        with pytest.raises(RefusedError) as caught:
            await call(path, command)
        assert str(caught.value) == message
        assert (await call(path, "status"))["port"] == 40123
        assert out.getvalue().count("\n") == (command == "defect")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"command": "status"}',
        b"\n",
        b"\xff\xfe\n",
        b"[]\n",
        b'"status"\n',
        b"{" * 2000 + b"\n",
        b"[" * 4000 + b"\n",
        b'{"command": "status", "x": "' + b"a" * 5000 + b'"}\n',
        b'{"command": "status", "timeout": -1}\n',
        b'{"command": "status", "timeout": true}\n',
        b'{"command": "status", "timeout": NaN}\n',
        b'{"command": "status", "timeout": 1e9}\n',
        b'{"command": ["status"]}\n',
    ],
)
async def test_a_bad_line_is_refused(path: Path, data: bytes) -> None:
    async with control(path) as (handlers, _):
        answer = json.loads(await raw(path, data))
        assert answer["ok"] is False
        assert answer["error"]
        assert handlers.requests == []


async def test_a_silent_caller_is_answered_no(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.times.CONTROL_REQUEST", 0.01)
    async with control(path):
        reader, writer = await asyncio.open_unix_connection(str(path))
        assert json.loads(await reader.read())["error"] == "the command took too long"
        writer.close()


async def test_the_commands_own_time_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.times.CONTROL_SPARE", 0.01)
    async with control(path):
        with pytest.raises(RefusedError, match="took too long"):
            await call(path, "drain", timeout=0)


async def test_too_many_callers_are_dropped_and_room_is_made_again(path: Path) -> None:
    async with control(path) as (handlers, _):
        async with AsyncExitStack() as stack:
            for _ in range(16):
                writer = (await asyncio.open_unix_connection(str(path)))[1]
                stack.callback(writer.close)
            await turns(5)
            with pytest.raises(NoAgentError, match=r"hung up|Broken pipe|reset"):
                await call(path, "status")
        await turns(5)
        assert (await call(path, "status"))["port"] == 40123
        assert len(handlers.requests) == 1


async def test_a_stale_socket_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with pytest.raises(NoAgentError, match="Connection refused"):
        await call(path, "status")
    async with control(path):
        assert (await call(path, "status"))["port"] == 40123


async def test_the_end_leaves_the_socket_of_a_successor(path: Path) -> None:
    async with AsyncExitStack() as stack:
        async with control(path):
            await stack.enter_async_context(control(path))
        assert (await call(path, "status"))["port"] == 40123
    assert not path.exists()


async def test_a_missing_folder_is_one_warning(tmp_path: Path) -> None:
    async with control(tmp_path / "none" / "agent.sock") as (_, out):
        (line,) = out.getvalue().splitlines()
    told = json.loads(line)
    assert (told["event"], told["level"], told["error"]) == (
        "no control socket",
        "warning",
        "No such file or directory",
    )
    assert "SPARK_UI_AGENT_DIR" in told["remedy"]


async def test_a_path_that_is_too_long_is_said(tmp_path: Path) -> None:
    folder = tmp_path / ("a" * 100)
    folder.mkdir()
    async with control(folder / "agent.sock") as (_, out):
        assert "a Unix socket's has at most 107" in json.loads(out.getvalue())["error"]
        with pytest.raises(NoAgentError, match="set SPARK_UI_AGENT_DIR to a shorter path"):
            await call(folder / "agent.sock", "status")


async def test_the_longest_path_works(tmp_path: Path) -> None:
    short = len(os.fsencode(tmp_path / "x" / "agent.sock"))
    folder = tmp_path / ("x" * (107 - short + 1))
    folder.mkdir()
    async with control(folder / "agent.sock"):
        assert (await call(folder / "agent.sock", "status"))["port"] == 40123


# --- the client alone -----------------------------------------------------------------------------------


@asynccontextmanager
async def answering(path: Path, answer: bytes | None) -> AsyncIterator[None]:
    """Something that listens at the socket and answers any line with these bytes, or not at all."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        if answer is not None:
            writer.write(answer)
        else:
            await reader.read()
        writer.close()

    server = await asyncio.start_unix_server(serve, str(path))
    async with server:
        yield


async def test_no_socket_names_the_path_and_the_remedy(path: Path) -> None:
    with pytest.raises(NoAgentError) as caught:
        await call(path, "status")
    assert str(caught.value) == (
        f"no running agent at {path} (No such file or directory); run this inside the agent's container, "
        "with the agent's own SPARK_UI_AGENT_DIR"
    )


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"[]\n", b'{"ok": tru', b"\xff\n"])
async def test_something_else_answers(path: Path, answer: bytes) -> None:
    async with answering(path, answer):
        with pytest.raises(RefusedError, match="is not spark-ui-agent"):
            await call(path, "status")


async def test_hanging_up_is_no_agent(path: Path) -> None:
    async with answering(path, b""):
        with pytest.raises(NoAgentError, match="it hung up"):
            await call(path, "status")


async def test_no_answer_is_a_time_out(path: Path) -> None:
    async with answering(path, None):
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(ask, path, "status", 0.05)


async def test_no_time_left_is_a_time_out(path: Path) -> None:
    async with answering(path, b'{"ok": true, "result": {}}\n'):
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(ask, path, "status", 0.0)


async def test_a_long_answer_comes_whole(path: Path) -> None:
    listeners = [{"port": number, "why": "x" * 100} for number in range(5000)]
    line = json.dumps({"ok": True, "result": {"listeners": listeners}}).encode() + b"\n"
    async with answering(path, line):
        assert (await call(path, "discover"))["listeners"] == listeners
