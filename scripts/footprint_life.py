"""One life of the agent as a process of its own, and what it cost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from sandbox.agent import Place

LINE_SECONDS = 30.0
SETTLE_SECONDS = 2.0  # what the start leaves behind (slice reads, an Event) is done by then

# Runs in place of the agent until it becomes it: dies with us, and says what CPU time it has used itself.
_BECOME = """
import ctypes, os, signal, sys, time
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
print(time.process_time_ns(), file=sys.stderr, flush=True)
os.execv(sys.argv[1], sys.argv[1:])
"""


@dataclass(frozen=True)
class Life:
    """One life of the agent, in the units of the table."""

    waiting_ms: float
    published_ms: float
    rss_mib: float
    anonymous_mib: float
    idle_mcpu: float
    threads: float


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of ``pid`` in ns (first field of schedstat, proc(5); /proc/PID/stat has 10 ms ticks)."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def memory_mib(pid: int, name: str) -> float:
    """One of the memory lines of /proc/PID/status in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def threads(pid: int) -> int:
    """How many threads ``pid`` has."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


async def line(process: asyncio.subprocess.Process, event: str, log: list[str]) -> None:
    """Read the agent's log to the line ``event``. Raises `RuntimeError` with the log when it does not come."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINE_SECONDS):
            while process.stderr is not None and (raw := await process.stderr.readline()):
                log.append(raw.decode(errors="replace").rstrip())
                with contextlib.suppress(ValueError):
                    if json.loads(log[-1]).get("event") == event:
                        return
    raise RuntimeError(f"no line '{event}' within {LINE_SECONDS:g} s; the agent's log:\n" + "\n".join(log))


async def live(environment: Path, place: Place, folder: Path, idle: float) -> Life:
    """One life. The agent is killed when something goes wrong."""
    env = {**place.env(folder), "SSL_CERT_FILE": "/dev/null", "SSL_CERT_DIR": "/nonexistent"}
    become = (sys.executable, "-ISs", "-c", _BECOME)
    process = await asyncio.create_subprocess_exec(
        *become,
        str(environment / "bin" / "spark-ui-agent"),
        "run",
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        if process.stderr is None:
            raise ValueError("the agent has no pipe for its log")
        before = int(await process.stderr.readline())
        log: list[str] = []
        await line(process, "waiting", log)
        waiting = cpu_ns(process.pid) - before
        await line(process, "published", log)
        published = cpu_ns(process.pid) - before
        await asyncio.sleep(SETTLE_SECONDS)
        began = cpu_ns(process.pid)
        await asyncio.sleep(idle)
        spent = cpu_ns(process.pid) - began
        life = Life(
            waiting / 1e6,
            published / 1e6,
            memory_mib(process.pid, "VmRSS"),
            memory_mib(process.pid, "RssAnon"),
            spent / 1e6 / idle,
            float(threads(process.pid)),
        )
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(LINE_SECONDS):
            await process.communicate()
        return life
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
