"""Temporary folders that go away even when their owner was killed: the next one sweeps them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sandbox.cache import cache_dir, locked

PREFIX = "spark-ui-agent-"
LOCK_SECONDS = 60.0


@contextlib.contextmanager
def scratch_folder(kind: str) -> Iterator[Path]:
    """Give a new temporary folder and remove it afterwards, with those of this ``kind`` whose owners are dead.

    The owner holds a lock on its folder, which the kernel drops when it dies.
    """
    prefix = f"{PREFIX}{kind}-"
    with locked(cache_dir() / f"{kind}.lock", "making a temporary folder", within=LOCK_SECONDS):
        _sweep(prefix)
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _sweep(prefix: str) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        # another user's folder cannot be opened, and another sandbox may remove its own just now
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
