"""The containers of a Pod on the node: what the kubelet says of them, and their processes as the machine sees them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from sandbox.apiclient import Object

PROC = Path("/proc")
# clock ticks per second of /proc/PID/stat
_TICKS = os.sysconf("SC_CLK_TCK")
# field 22 of stat, counted from behind the name in brackets
_START_FIELD = 19
_STATUSES = ("initContainerStatuses", "containerStatuses")


def container_status(pod: Object, name: str) -> Object:
    """Return the kubelet's status of a container, an ordinary one or a sidecar; empty while there is none."""
    every = [one for kind in _STATUSES for one in pod.get("status", {}).get(kind) or []]
    return next((one for one in every if one["name"] == name), {})


def terminated(pod: Object, name: str) -> Object:
    """Return how a container has ended (exitCode, reason, ...); empty while it has not."""
    ended: Object = container_status(pod, name).get("state", {}).get("terminated") or {}
    return ended


def finished_at(ended: Object) -> float:
    """Return when a container has ended by the kubelet, in whole seconds of the epoch; ``ended`` as from `terminated`."""
    return datetime.fromisoformat(ended["finishedAt"]).timestamp()


def is_running(pod: Object, name: str) -> bool:
    """True while the kubelet says that a container runs."""
    return "running" in container_status(pod, name).get("state", {})


def main_process(pod: Object, name: str) -> int:
    """Return the pid, among the machine's, of a running container's process 1. LookupError where there is none."""
    identity = container_status(pod, name).get("containerID", "").rpartition("/")[2]
    for folder in PROC.glob("[0-9]*"):
        # processes end while they are looked at
        with contextlib.suppress(OSError):
            if identity and identity in (folder / "cgroup").read_text() and _innermost(folder) == 1:
                return int(folder.name)
    raise LookupError(f"container {name} of {pod['metadata']['name']} has no process")


def sandbox_started_at(pod: Object) -> float:
    """Return when a Pod's first process, that of its sandbox, was started; see `started_at`.

    Before that come what the kubelet waits for (its volumes above all) and the network; after it the containers, in order.
    LookupError where the Pod has no process.
    """
    mark, found = f"pod{pod['metadata']['uid']}", []
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "cgroup").read_text():
                found.append(started_at(int(folder.name)))
    if not found:
        raise LookupError(f"{pod['metadata']['name']} has no process")
    return min(found)


def started_at(pid: int) -> float:
    """Return when a process was started, in seconds of CLOCK_MONOTONIC, to 10 ms (proc(5): ticks since boot)."""
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    asleep = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    return int(fields[_START_FIELD]) / _TICKS - asleep


@contextlib.contextmanager
def exit_of(pid: int) -> Iterator[asyncio.Future[float]]:
    """Watch a process: the future becomes the instant of its end, in seconds of CLOCK_MONOTONIC.

    ProcessLookupError when it has ended already.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[float] = loop.create_future()
    handle = os.pidfd_open(pid)

    def tell() -> None:
        loop.remove_reader(handle)
        ended.set_result(time.monotonic())

    loop.add_reader(handle, tell)
    try:
        yield ended
    finally:
        loop.remove_reader(handle)
        os.close(handle)
        ended.cancel()


def _innermost(folder: Path) -> int:
    """Return a process's pid in the innermost of its namespaces."""
    lines = (folder / "status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("NSpid:")).split()[-1])
