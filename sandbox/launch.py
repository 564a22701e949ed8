"""Start a child process that cannot outlive its parent: optionally in a network namespace, as another uid."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import signal
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sandbox.enter import Entry

_ENTER = Path(__file__).with_name("enter.py")
REPOSITORY = Path(__file__).parent.parent
# A killed process is reaped at once, unless it sits in the kernel: a JVM frees about a GiB per 90 ms.
REAP_SECONDS = 20.0


def closed_folders(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Group ``paths``, links resolved, under the topmost folder on the way that is closed to others (no o+x)."""
    closed: dict[str, list[str]] = {}
    for path in sorted({path.resolve() for path in paths}):
        for folder in reversed(path.parents):
            if not folder.stat().st_mode & stat.S_IXOTH:
                closed.setdefault(str(folder), []).append(str(path))
                break
    return closed


def passwd_with(uid: int, gid: int, home: Path) -> str:
    """Return the text of /etc/passwd with an entry for ``uid``, which the JVM's login module insists on."""
    text = Path("/etc/passwd").read_text()
    with contextlib.suppress(KeyError):
        pwd.getpwuid(uid)
        return text
    return f"{text.rstrip()}\nuser{uid}:x:{uid}:{gid}::{home}:/bin/false\n"


async def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    namespace_fd: int | None = None,
    uid: int | None = None,
    gid: int | None = None,
    reads: Iterable[Path] = (),
    binds: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int | None = asyncio.subprocess.DEVNULL,
    stdout: int | None = None,
    stderr: int | None = None,
    limit: int = 1 << 16,
) -> asyncio.subprocess.Process:
    """Start ``argv`` in a session of its own; the kernel kills it when the calling thread ends.

    ``gid`` is ``uid`` unless given. ``reads``: paths that a process with another uid has to reach beside this
    interpreter and ``cwd``; those under a folder closed to others (a cache in /root, a test's temporary folder)
    are shown to it at the same place, in a mount namespace of its own, so it needs no capability. Their own
    modes stay; what else is in the closed folder is not there for it. ``binds`` (target to source) replaces
    files for this process alone. ``limit`` is the longest line of a piped stream. All but the plain start need
    root.

    Raises `OSError` when the interpreter cannot be started; a step refused inside the child is its exit code 1
    and a traceback on stderr.
    """
    folder = Path(cwd) if cwd is not None else await asyncio.to_thread(Path.cwd)
    needed = [Path(sys.base_prefix), Path(sys.prefix), folder, *reads]
    entry: Entry = {
        "parent": os.getpid(),
        "namespace_fd": namespace_fd,
        "uid": uid,
        "gid": uid if gid is None else gid,
        "openings": {} if uid in {None, 0} else closed_folders(needed),
        "binds": dict(binds or {}),
        "cwd": str(folder),
    }
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(_ENTER),
        json.dumps(entry),
        *argv,
        env=dict(env),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=() if namespace_fd is None else (namespace_fd,),
        start_new_session=True,
        limit=limit,
    )


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill the process and all of its session, then reap it. Raises `TimeoutError` after REAP_SECONDS."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    async with asyncio.timeout(REAP_SECONDS):
        await process.wait()
