"""Become another program inside given namespaces, with another uid, bound to the parent's life.

Run as a script by `sandbox.launch` (standard library alone, isolated interpreter): the first argument is JSON,
the rest is the program. It exists because the steps must happen between fork and exec, where a
multi-threaded parent may not run Python code.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


class Entry(TypedDict):
    """What to enter and become.

    ``parent`` is the pid whose death ends us. ``openings``: folders closed to others, each with the paths below it that are to be
    reachable all the same. ``binds``: files to show in place of others, target to source.
    """

    parent: int
    namespace_fd: int | None
    uid: int | None
    gid: int | None
    openings: dict[str, list[str]]
    binds: dict[str, str]
    cwd: str


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def set_network_namespace(fd: int) -> None:
    """Move the calling thread into the network namespace that ``fd`` refers to (needs CAP_SYS_ADMIN)."""
    _check(_libc.setns(fd, CLONE_NEWNET), "setns")


def unshare(flags: int) -> None:
    """Give the calling thread new namespaces (needs CAP_SYS_ADMIN)."""
    _check(_libc.unshare(flags), "unshare")


def die_with_parent(parent: int | None = None) -> None:
    """Ask for SIGKILL when the thread that started us ends; end at once if ``parent`` is already gone."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
    if parent is not None and os.getppid() != parent:
        sys.exit("the parent process has already ended")


def mount(source: str, target: str, kind: bytes | None, flags: int, data: bytes | None = None) -> None:
    """Call mount(2) (needs CAP_SYS_ADMIN)."""
    result = _libc.mount(os.fsencode(source), os.fsencode(target), kind, flags, data)
    _check(result, f"mount {source} on {target}")


def _open_up(folder: str, paths: Sequence[str]) -> None:
    """Put an open folder in the place of a closed one, with ``paths`` below it and nothing else."""
    held = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in paths]
    files = [Path(path).is_file() for path in paths]
    mount("tmpfs", folder, b"tmpfs", 0, b"mode=0755")
    for path, fd, is_file in zip(paths, held, files, strict=True):
        place = Path(path)
        if is_file:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        else:
            place.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{fd}", path, None, MS_BIND)
        os.close(fd)


def _rearrange_files(entry: Entry) -> None:
    """Apply openings and binds in a mount namespace of our own, which nobody else sees."""
    unshare(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    for target, source in entry["binds"].items():
        mount(source, target, None, MS_BIND)
    for folder, paths in entry["openings"].items():
        _open_up(folder, paths)


def enter(entry: Entry, argv: Sequence[str]) -> None:
    """Apply ``entry``, then exec ``argv``; does not return. Raises `OSError` where a step is refused."""
    if entry["namespace_fd"] is not None:
        set_network_namespace(entry["namespace_fd"])
        os.close(entry["namespace_fd"])
    if entry["binds"] or entry["openings"]:
        _rearrange_files(entry)
    os.chdir(entry["cwd"])
    uid, gid = entry["uid"], entry["gid"]
    if uid is not None and gid is not None:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # after the change of uid, which clears it (prctl(2), PR_SET_PDEATHSIG)
    die_with_parent(entry["parent"])
    os.execvp(argv[0], list(argv))


if __name__ == "__main__":
    enter(json.loads(sys.argv[1]), sys.argv[2:])
