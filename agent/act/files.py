"""Small files in a directory that others write as well: read without waiting, written by rename."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def read(path: Path, most: int) -> bytes:
    """At most `most` + 1 bytes of a regular file; never waits for a writer, as a FIFO would."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is no regular file")
        return file.read(most + 1)


def write(path: Path, content: bytes, mode: int) -> None:
    """Makes `path` a file with this content by rename; one that is right is left alone."""
    with suppress(OSError):
        right = not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) == mode
        if right and read(path, len(content)) == content:
            return
    made = temporary(path, content, mode)
    try:
        made.replace(path)
    except OSError:
        made.unlink(missing_ok=True)
        raise


def temporary(path: Path, content: bytes, mode: int) -> Path:
    """A new file with this content beside `path`, to be linked or renamed to it."""
    made = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
    except OSError:
        made.unlink(missing_ok=True)
        raise
    return made
