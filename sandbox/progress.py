"""Progress of long steps on stderr: who waits for a build must see that it moves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.die_with_parent import die_with_parent

EVERY_SECONDS = 10.0
TAIL_LINES = 15


class CommandError(Exception):
    """A command of a long step failed; the message names it and ends with the last lines that it said."""


class Progress:
    """Says ``what`` and the seconds so far: at most once per ten seconds, however often `tick` is called."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = self._said = time.monotonic()

    def tick(self) -> None:
        """Print a line if ten seconds have passed since the last one."""
        now = time.monotonic()
        if now - self._said >= EVERY_SECONDS:
            self._said = now
            self.say()

    def say(self) -> None:
        """Print a line now."""
        print(f"{self._what}, {time.monotonic() - self._began:.0f} s ...", file=sys.stderr, flush=True)


def run(
    argv: Sequence[str | Path],
    what: str,
    *,
    log: Path,
    within: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a command to its end with progress lines, its output appended to ``log``.

    Raises `CommandError` when it fails or is not done ``within`` seconds. The command and its children are killed
    when this function is left early.
    """
    progress = Progress(what)
    progress.say()
    deadline = time.monotonic() + within
    with log.open("ab") as output:
        process = subprocess.Popen(
            die_with_parent(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=cwd,
            env=env,
            process_group=0,
        )
        try:
            while time.monotonic() < deadline:
                try:
                    status = process.wait(timeout=1)
                except subprocess.TimeoutExpired:
                    progress.tick()
                    continue
                if status != 0:
                    raise CommandError(f"{what}: {argv[0]} ended with {status}\n{tail(log)}")
                return
            raise CommandError(f"{what}: not done after {within:.0f} s\n{tail(log)}")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def tail(log: Path) -> str:
    """Return the last lines of a log, indented for a message; empty where there is no log."""
    if not log.exists():
        return ""
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    return "\n".join(f"    {line}" for line in lines)
