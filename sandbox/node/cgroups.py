"""The node's own place in the machine's control groups, version 1 or 2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
# version 1: hierarchies in which kubelet and runc make groups
CONTROLLERS = (
    "blkio",
    "cpu",
    "cpuacct",
    "cpuset",
    "devices",
    "freezer",
    "hugetlb",
    "memory",
    "perf_event",
    "pids",
    "systemd",
    "unified",
)
# a cpuset without these takes no process
INHERITED = ("cpuset.cpus", "cpuset.mems")
# version 2: what the kubelet insists on
NEEDED = ("cpu", "cpuset", "io", "memory", "pids")


class CgroupError(Exception):
    """No group can be made here. The message says which, and the remedy."""


def unified() -> bool:
    """True where the machine has version 2 alone."""
    return (ROOT / "cgroup.controllers").exists()


def places(name: str) -> list[Path]:
    """Return the folders of the group ``name``, one per hierarchy."""
    if unified():
        return [ROOT / name]
    return [ROOT / controller / name for controller in CONTROLLERS if (ROOT / controller).is_dir()]


@contextlib.contextmanager
def group(name: str) -> Iterator[None]:
    """Make the group ``name`` below the root, and remove it with all below it, when no process is left in it.

    Raises `CgroupError` where the machine does not allow it.
    """
    try:
        if unified():
            _delegate()
        for place in places(name):
            place.mkdir()
            for file in INHERITED:
                if (place / file).exists() and not unified():
                    (place / file).write_text((place.parent / file).read_text())
    except OSError as error:
        remove(name)
        raise CgroupError(
            f"cannot make the control group {name} below {ROOT}: {error}. It has to be mounted writable; in a container "
            "that means --privileged, and with version 2 a root group that holds no processes itself"
        ) from error
    try:
        yield
    finally:
        remove(name)


def sweep(prefix: str, alive: set[str]) -> None:
    """Remove the groups whose names begin with ``prefix`` and are not ``alive``: their owners were killed."""
    for base in [ROOT] if unified() else [ROOT / controller for controller in CONTROLLERS]:
        for left in base.glob(f"{prefix}*"):
            if left.name not in alive:
                _remove_tree(left)


def remove(name: str) -> None:
    """Remove the group ``name`` with all below it; what still holds a process stays."""
    for place in places(name):
        _remove_tree(place)


def _delegate() -> None:
    offered = (ROOT / "cgroup.controllers").read_text().split()
    absent = [controller for controller in NEEDED if controller not in offered]
    if absent:
        raise CgroupError(
            f"{ROOT} has no controller {', '.join(absent)}; the kernel or the container around withholds it"
        )
    (ROOT / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in NEEDED))


def _remove_tree(top: Path) -> None:
    for folder in sorted((path for path in [top, *top.rglob("*")] if path.is_dir()), reverse=True):
        # busy: a process is dying in it, and whoever comes next will sweep it
        with contextlib.suppress(OSError):
            folder.rmdir()
