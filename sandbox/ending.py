"""How a command of the sandbox is told to end: by a signal, or by the other end of its stdin."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from types import FrameType

STDIN = 0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def leave_on_signals() -> None:
    """Exit with 0 on each signal that ends, until `cancel_when_ending` knows better."""
    for number in ENDING:
        signal.signal(number, _leave)


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def cancel_when_ending(*, until_stdin_closes: bool) -> None:
    """Cancel the running task on such a signal, or also when the other end of stdin is closed."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()

    def end() -> None:
        # once: a second signal must not interrupt the cleaning up
        if task is not None and not task.cancelling():
            task.cancel()

    def read() -> None:
        if not os.read(STDIN, 1024):
            loop.remove_reader(STDIN)
            end()

    for number in ENDING:
        loop.add_signal_handler(number, end)
    if until_stdin_closes:
        loop.add_reader(STDIN, read)
