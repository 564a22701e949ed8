"""What the node's namespaces need before its daemons start: mounts that keep their litter off the machine, a network."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sandbox.components import SERVICE_RANGE
from sandbox.enter import MS_BIND, MS_REC, mount

MS_SHARED = 1 << 20
STEP_SECONDS = 30.0

# The kubelet sets these for the whole machine unless it finds its own values: it is shown them in place of the real ones.
KUBELET_SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
# containerd's shims, the locks of iptables, the kubelet's links to logs: paths that no option moves
EMPTIED_FOLDERS = ("/run", "/var/log")
# the records of CNI and the kubelet's plugins, likewise, but this one holds what is needed too
LAYERED_FOLDER = "/var/lib"


def arrange_mounts(scratch: Path) -> None:
    """Put private folders and files over the machine's in this mount namespace, then let mounts reach containers."""
    for folder in EMPTIED_FOLDERS:
        mount("tmpfs", folder, b"tmpfs", 0, b"mode=0755")
    _layer(LAYERED_FOLDER, Path("/run/layer"))
    shown = scratch / "sysctl"
    shown.mkdir()
    for number, (name, value) in enumerate(KUBELET_SYSCTLS.items()):
        file = shown / str(number)
        file.write_text(f"{value}\n")
        mount(str(file), f"/proc/sys/{name}", None, MS_BIND)
    mount("none", "/", None, MS_REC | MS_SHARED)


def _layer(folder: str, layer: Path) -> None:
    """Let what is written into ``folder`` go into ``layer``; what is mounted below it stays to be seen."""
    below = [place for place in _mount_points() if place.startswith(f"{folder}/")]
    held = [os.open(place, os.O_PATH | os.O_CLOEXEC) for place in below]
    upper, work = layer / "upper", layer / "work"
    upper.mkdir(parents=True)
    work.mkdir()
    options = f"lowerdir={folder},upperdir={upper},workdir={work}"
    mount("overlay", folder, b"overlay", 0, options.encode())
    for place, fd in zip(below, held, strict=True):
        mount(f"/proc/self/fd/{fd}", place, None, MS_BIND)
        os.close(fd)


def _mount_points() -> list[str]:
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def arrange_network(address: str) -> None:
    """Let the namespace forward, and give it a way out that leads nowhere.

    A packet to a Service needs some route before kube-proxy's rules turn it to a Pod. A veth pair serves, which more
    kernels have than the dummy device. Raises `subprocess.CalledProcessError`.
    """
    _run(
        ["ip", "-batch", "-"],
        [
            "link add outward type veth peer name nowhere",
            "link set nowhere up",
            "link set outward up",
            f"route add default dev outward src {address}",
        ],
    )
    for chain in ("OUTPUT", "FORWARD"):
        # a Service that kube-proxy does not know yet: refused at once, where that way out would take 3 s
        _run(["iptables", "-A", chain, "-d", SERVICE_RANGE, "-j", "REJECT"])
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _run(argv: Sequence[str], lines: Sequence[str] = ()) -> None:
    subprocess.run(argv, input="\n".join(lines), text=True, check=True, timeout=STEP_SECONDS)
