"""`run` as a process of its own: it never exits non-zero, and bad settings leave it up and harmless."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.paths import INSTALLED_FILE, LOCK_FILE
from agent.settings import PREFIX
from agent.tell.client import ask
from sandbox.die_with_parent import die_with_parent
from tests.unit.telling import ENV

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 30.0


@asynccontextmanager
async def program(env: Mapping[str, str]) -> AsyncIterator[Process]:
    """The agent's process; killed at the end, if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *die_with_parent([sys.executable, "-m", "agent", "run"]),
        cwd=ROOT,
        env=dict(env),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        async with asyncio.timeout(DEADLINE):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def logged(process: Process, event: str) -> dict[str, object]:
    """The next line of the log that is about `event`."""
    assert process.stderr is not None
    async for line in process.stderr:
        told: dict[str, object] = json.loads(line)
        if told["event"] == event:
            return told
    raise AssertionError(f"the log ended without {event!r}")


async def get(address: object, path: str) -> bytes:
    host, _, port = str(address).rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        **ENV,
        PREFIX + "DIR": str(tmp_path),
        PREFIX + "HEALTH_ADDRESS": "127.0.0.1:0",
        PREFIX + "HOOK": "off",
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_bad_settings_leave_it_up_and_a_signal_ends_it_with_0(
    number: signal.Signals, env: dict[str, str], tmp_path: Path
) -> None:
    async with program({**env, PREFIX + "EXPOSE": "0"}) as process:
        blocked = await logged(process, "blocked")
        assert (blocked["reason"], blocked["level"]) == ("settings", "warning")
        assert "SPARK_UI_AGENT_EXPOSE is '0'" in str(blocked["found"])
        address = (await logged(process, "HTTP endpoints"))["address"]
        assert (await get(address, "/startup")).startswith(b"HTTP/1.1 503 ")
        assert (await get(address, "/liveness")).startswith(b"HTTP/1.1 200 ")
        answer = await asyncio.to_thread(ask, tmp_path / "agent.sock", "status", DEADLINE)
        assert (answer["state"], answer["reason"]) == ("blocked", "settings")
        process.send_signal(number)
        assert await process.wait() == 0
        assert not (tmp_path / "agent.sock").exists()
        assert process.stdout is not None
        assert await process.stdout.read() == b""


async def test_sigterm_while_the_imports_run_ends_it_at_once(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "structlog.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    async with program({**env, "PYTHONPATH": str(tmp_path)}) as process:
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")


async def test_a_defect_at_the_start_is_one_line_and_0(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "h11.py").write_text("raise ImportError('h11 is broken')\n")
    async with program({**env, "PYTHONPATH": str(tmp_path)}) as process:
        _, err = await process.communicate()
    told = json.loads(err)
    assert (process.returncode, told["event"], told["error"]) == (
        0,
        "the agent failed",
        "ImportError: h11 is broken",
    )


AT_ASYNCIO = """
import os, sys
from agent.__main__ import main

def look(event, args):
    if event == "import" and args[0] == "asyncio":
        print(*os.listdir(place), flush=True)
        os._exit(0)

sys.addaudithook(look)
sys.argv[2:], place = [], sys.argv[2]
main()
"""


async def test_the_hooks_files_stand_before_anything_big_is_imported(
    env: dict[str, str], tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        *die_with_parent([sys.executable, "-c", AT_ASYNCIO, "run", str(tmp_path)]),
        cwd=ROOT,
        env={**env, PREFIX + "HOOK": "on"},
        stdout=PIPE,
    )
    async with asyncio.timeout(DEADLINE):
        said, _ = await process.communicate()
    assert set(said.decode().split()) == {
        "log4j2.xml",
        "hook.xml",
        "hook.json",
        INSTALLED_FILE,
        LOCK_FILE,
    }
