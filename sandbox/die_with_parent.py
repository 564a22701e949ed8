"""Run a command that the kernel kills when the process that started it dies: ``python die_with_parent.py PID COMMAND``.

PR_SET_PDEATHSIG survives execve (prctl(2)). It fires when the starting *thread* ends, so start such commands
from a thread that lives as long as they should.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1


def die_with_parent(argv: Sequence[str | Path]) -> list[str]:
    """Return the command line that runs ``argv`` so that SIGKILL reaches it when this process dies."""
    return [sys.executable, "-ISs", __file__, str(os.getpid()), *map(str, argv)]


def main() -> None:
    """Ask the kernel for the signal, then become the command. Exits at once if the parent has died already."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() == parent:
        os.execvp(command[0], command)


if __name__ == "__main__":
    main()
