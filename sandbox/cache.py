"""The user's cache folder, where everything that the sandbox builds or installs is kept, and locks on files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sandbox.progress import Progress

LOCK_POLL_SECONDS = 0.1
WORKSPACE_PREFIX = "new-"


def cache_dir() -> Path:
    """Return (and create) ``spark-ui-agent`` below ``XDG_CACHE_HOME``, or below ``~/.cache`` where that is unset."""
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "spark-ui-agent"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def locked(file: Path, what: str, *, within: float) -> Iterator[None]:
    """Hold an exclusive lock on ``file`` (made if need be); the kernel drops it when this process dies.

    ``what`` names in progress lines the work that another holder does meanwhile. Raises TimeoutError after
    ``within`` seconds.
    """
    with file.open("a") as handle:
        progress = Progress(f"waiting for another process: {what}")
        deadline = time.monotonic() + within
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    message = f"{what}: another process has held {file} for more than {within:.0f} s"
                    raise TimeoutError(message) from None
            time.sleep(LOCK_POLL_SECONDS)
            progress.tick()
        yield


@contextlib.contextmanager
def workspace(base: Path) -> Iterator[Path]:
    """Give a temporary folder in ``base``, from where a rename can place what was made; call it under a lock.

    What killed holders left there is removed first.
    """
    for left in base.glob(f"{WORKSPACE_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=base, prefix=WORKSPACE_PREFIX) as folder:
        yield Path(folder)
