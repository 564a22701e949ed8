"""What the kernel tells about processes."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from pathlib import Path


def children(pid: int) -> dict[str, int]:
    """Return the names (cut to 15 characters by the kernel) and ids of the processes that ``pid`` has started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {Path(f"/proc/{child}/comm").read_text().strip(): int(child) for child in listed}


def survivors(pids: Sequence[int], within: float = 10.0) -> set[int]:
    """Wait until these processes have ended, at most ``within`` seconds; return those that have not."""
    deadline = time.monotonic() + within
    return {pid for pid in pids if not _ended(pid, deadline)}


def _ended(pid: int, deadline: float) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
    finally:
        os.close(handle)
