"""The node itself: two at once do not meet, and nothing is left of one that was killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sandbox.node import cgroups
from sandbox.node.cluster import Cluster, started
from sandbox.node.outside import KIND, Entrance
from sandbox.pods import create_namespace
from sandbox.scratch import PREFIX, scratch_folder
from tests.sandbox.processes import survivors

DAEMONS = {
    "containerd",
    "etcd",
    "kube-apiserver",
    "kube-controller",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
}


def _processes(node: Cluster) -> dict[int, str]:
    """Return the node's processes by pid: all in its namespace of processes."""
    first = Entrance.read(node.layout.folder).files.parent
    namespace = (first / "ns/pid").readlink()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "ns/pid").readlink() == namespace:
                found[int(folder.name)] = (folder / "comm").read_text().strip()
        except OSError:
            continue
    return found


@pytest.fixture
def mounts() -> set[str]:
    """What the machine has mounted."""
    return set(Path("/proc/self/mounts").read_text().splitlines())


async def test_two_do_not_meet_and_nothing_is_left_of_one_that_was_killed(
    cluster: Cluster, mounts: set[str]
) -> None:
    with started() as other:
        await create_namespace(other.admin, "only-there")
        there = await cluster.admin.request("GET", "/api/v1/namespaces/only-there")
        processes, folder = _processes(other), other.layout.folder
        os.kill(other.pid, signal.SIGKILL)
        left = survivors([other.pid, *processes])

    assert there.status == 404
    assert set(processes.values()) >= DAEMONS
    assert left == set()
    assert set(Path("/proc/self/mounts").read_text().splitlines()) == mounts
    # folder and control groups go when the next node comes, which does these two
    with scratch_folder(KIND):
        cgroups.sweep(f"{PREFIX}{KIND}-", {one.name for one in folder.parent.glob(f"{PREFIX}{KIND}-*")})
    assert not folder.exists()
    assert [place for place in cgroups.places(folder.name) if place.exists()] == []
    assert (await cluster.admin.request("GET", "/readyz")).text == "ok"
