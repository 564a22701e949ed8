"""Which of the two that begin with a sidecar writes the driver's files: the agent, or `install-hook` in its postStart hook.

Both at once take twice the CPU, and under a small limit each takes the other's share (with 10m that was half a minute
of the driver's start). So the first holds a lock on a file in the shared volume, and the hook waits. The kernel frees
the lock when its holder ends. Loaded before anything else, this imports next to nothing.
"""

from __future__ import annotations

import fcntl
import os
import time

from . import times
from .paths import DIR, INSTALLED_FILE, LOCK_FILE, PROOF_FILE


class Turn:
    """A lock in the volume at `directory`; where that can't be written there is none, and nobody waits."""

    def __init__(self, directory: str) -> None:
        self._directory = directory.strip() or DIR
        self._handle = -1

    def take(self) -> bool:
        """Begins, when nobody else has; never waits."""
        try:
            if self._handle < 0:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                self._handle = os.open(f"{self._directory}/{LOCK_FILE}", flags, 0o600)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            self.done()
        return True

    def wait(self) -> None:
        """Begins when nobody else writes, or has for too long.

        The longer it takes, the more seldom it looks: each look takes CPU from whoever writes.
        """
        began = time.monotonic()
        while not self.take() and (waited := time.monotonic() - began) < times.INSTALL:
            time.sleep(max(times.INSTALL_POLL, waited / 10))

    def done(self) -> None:
        """The files stand, or never will by this process."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def needless(self) -> bool:
        """True when the driver's files stand and, as no UI was proven before, no restarted agent has to be waited for."""
        return self._has(INSTALLED_FILE) and not self._has(PROOF_FILE)

    def _has(self, name: str) -> bool:
        return os.access(f"{self._directory}/{name}", os.F_OK)
