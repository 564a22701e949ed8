"""Who writes the driver's files at a sidecar's start: one of two, and the other waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.paths import INSTALLED_FILE, LOCK_FILE, PROOF_FILE
from agent.settings import PREFIX
from agent.turn import Turn
from sandbox.die_with_parent import die_with_parent
from tests.unit.telling import ENV

ROOT = Path(__file__).resolve().parents[2]
HOOK = [sys.executable, "-X", "importtime", "-m", "agent", "install-hook"]
SECONDS = 20.0


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A sidecar's, with its volume."""
    return {**ENV, PREFIX + "DIR": str(tmp_path), PREFIX + "HEALTH_ADDRESS": "off"}


def loaded(said: bytes) -> set[str]:
    """The modules that a process tells of."""
    return {line.rpartition("|")[2].strip() for line in said.decode().splitlines() if "|" in line}


def install_hook(env: Mapping[str, str]) -> set[str]:
    """What a process of its own loads."""
    done = subprocess.run(HOOK, cwd=ROOT, env=dict(env), capture_output=True, timeout=SECONDS, check=True)
    return loaded(done.stderr)


async def opened(pid: int, file: Path) -> None:
    """Returns once a process has a file open, which no event tells."""
    while True:
        if any(one.exists() and one.readlink() == file for one in Path(f"/proc/{pid}/fd").iterdir()):
            return
        await asyncio.sleep(0.005)


def test_the_second_begins_when_the_first_is_done(tmp_path: Path) -> None:
    first, second = Turn(str(tmp_path)), Turn(str(tmp_path))
    assert first.take()
    assert not second.take()
    first.done()
    assert second.take()
    assert not first.take()


def test_the_lock_ends_with_its_holder(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-c",
        f"from agent.turn import Turn; turn = Turn({str(tmp_path)!r}); print(turn.take(), flush=True); input()",
    ]
    with subprocess.Popen(
        die_with_parent(argv), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        turn = Turn(str(tmp_path))
        assert not turn.take()
        holder.kill()
        turn.wait()
    assert not Turn(str(tmp_path)).take()


def test_nobody_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.times.INSTALL", 0.05)
    first, second = Turn(str(tmp_path)), Turn(str(tmp_path))
    first.take()
    second.wait()
    assert not second.take()


@pytest.mark.parametrize("place", ["absent", "file"])
def test_where_nothing_can_be_written_nobody_waits(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    first, second = Turn(str(tmp_path / place)), Turn(str(tmp_path / place))
    assert first.take()
    assert second.take()
    assert not second.needless()


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "elsewhere")
    assert Turn(str(tmp_path)).take()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("stand", "needless"),
    [((), False), ((INSTALLED_FILE,), True), ((INSTALLED_FILE, PROOF_FILE), False), ((PROOF_FILE,), False)],
)
def test_what_stands_need_not_be_written_again(
    stand: tuple[str, ...], needless: bool, tmp_path: Path
) -> None:
    for name in stand:
        (tmp_path / name).touch()
    assert Turn(f" {tmp_path} ").needless() is needless


def test_install_hook_loads_nothing_where_the_agent_was_faster(env: dict[str, str], tmp_path: Path) -> None:
    first, again = install_hook(env), install_hook(env)
    assert {"agent.settings", "agent.act.volume", "argparse"} <= first
    assert "agent.turn" in again
    assert again.isdisjoint({"agent.settings", "agent.commands", "argparse"})
    # half of the files, as when the agent was killed while it wrote them
    (tmp_path / INSTALLED_FILE).unlink()
    (tmp_path / "log4j2.xml").unlink()
    assert "agent.act.volume" in install_hook(env)
    assert (tmp_path / "log4j2.xml").is_file()


@pytest.mark.parametrize("killed", [False, True])
async def test_install_hook_waits_for_the_agent_that_writes(
    killed: bool, env: dict[str, str], tmp_path: Path
) -> None:
    agent = await asyncio.create_subprocess_exec(
        *die_with_parent([sys.executable, "-m", "tests.support.halting_agent"]),
        cwd=ROOT,
        env=env,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    assert agent.stdout is not None
    assert agent.stdin is not None
    async with asyncio.timeout(SECONDS):
        assert await agent.stdout.readline() == b"writing\n"
        hook = await asyncio.create_subprocess_exec(*die_with_parent(HOOK), cwd=ROOT, env=env, stderr=PIPE)
        telling = asyncio.create_task(hook.communicate())
        await opened(hook.pid, tmp_path / LOCK_FILE)
        assert not (tmp_path / INSTALLED_FILE).exists()
        if killed:
            agent.kill()
        else:
            agent.stdin.write(b"\n")
        _, said = await telling
        # the hook writes them itself where the agent can't any more
        assert ("agent.act.volume" in loaded(said)) is killed
        assert hook.returncode == 0
        assert (tmp_path / INSTALLED_FILE).exists()
        if not killed:
            agent.terminate()
        await agent.communicate()


async def test_an_agent_with_wrong_settings_holds_nobody_back(env: dict[str, str], tmp_path: Path) -> None:
    wrong = {**env, PREFIX + "EXPOSE": "0"}
    agent = await asyncio.create_subprocess_exec(
        *die_with_parent([sys.executable, "-m", "agent"]), cwd=ROOT, env=wrong, stderr=PIPE
    )
    assert agent.stderr is not None
    async with asyncio.timeout(SECONDS):
        while b"blocked" not in await agent.stderr.readline():
            pass
        # it runs on, and the lock is free
        assert Turn(str(tmp_path)).take()
        assert not (tmp_path / INSTALLED_FILE).exists()
        agent.terminate()
        await agent.communicate()
