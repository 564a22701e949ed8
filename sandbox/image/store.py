"""Finished images in the user's cache, by name and by what they were made of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from sandbox.cache import cache_dir, locked, workspace

BUILD_SECONDS = 1800.0
# another checkout may be using an older one, but each is hundreds of megabytes
KEPT = 2


def kept(name: str, key: bytes, make: Callable[[Path], None]) -> Path:
    """Return the archive ``name`` made of what ``key`` stands for; ``make`` writes it where it is not there.

    ``make`` gets the file to write; more files may go beside it. Raises what ``make`` raises, and TimeoutError when
    another process makes the same for too long.
    """
    base = cache_dir() / "images" / name
    base.mkdir(parents=True, exist_ok=True)
    place = base / f"{hashlib.sha256(key).hexdigest()[:16]}.tar"
    if not place.exists():
        with locked(base / "lock", f"making the image {name}", within=BUILD_SECONDS):
            if not place.exists():
                with workspace(base) as fresh:
                    made = fresh / "made.tar"
                    make(made)
                    made.rename(place)
                others = [one for one in base.glob("*.tar") if one != place]
                for old in sorted(others, key=lambda one: one.stat().st_mtime)[: -KEPT + 1 or None]:
                    old.unlink()
    return place


def content_key(*parts: Path | str) -> bytes:
    """Return what tells the given texts and files apart from others; a folder counts with all that is in it."""
    told = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            told.update(part.encode() + b"\0")
            continue
        for file in sorted(part.rglob("*")) if part.is_dir() else [part]:
            if file.is_file() and file.suffix != ".pyc":
                told.update(f"{file.relative_to(part)}\0{file.stat().st_mode:o}\0".encode())
                told.update(hashlib.sha256(file.read_bytes()).digest())
    return told.digest()
