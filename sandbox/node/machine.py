"""What the node's namespaces need before its daemons start: mounts that keep their litter off the machine, a network."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

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
# containerd's shims, CNI's records, the locks of iptables, the kubelet's links to logs: paths that no option moves
PRIVATE_FOLDERS = ("/run", "/var/log")
# the same, but they may not be there; see `missing_folders`
MADE_FOLDERS = ("/var/lib/cni", "/var/lib/kubelet")


def missing_folders() -> list[Path]:
    """Return the folders that `arrange_mounts` would have to make on the machine, where it then mounts its own."""
    return [folder for folder in map(Path, MADE_FOLDERS) if not folder.exists()]


def arrange_mounts(scratch: Path) -> None:
    """Put private folders and files over the machine's in this mount namespace, then let mounts reach containers."""
    for folder in (*PRIVATE_FOLDERS, *MADE_FOLDERS):
        Path(folder).mkdir(parents=True, exist_ok=True)
        mount("tmpfs", folder, b"tmpfs", 0, b"mode=0755")
    shown = scratch / "sysctl"
    shown.mkdir()
    for number, (name, value) in enumerate(KUBELET_SYSCTLS.items()):
        file = shown / str(number)
        file.write_text(f"{value}\n")
        mount(str(file), f"/proc/sys/{name}", None, MS_BIND)
    mount("none", "/", None, MS_REC | MS_SHARED)


def arrange_network(address: str) -> None:
    """Let the namespace forward, and give it a way out that leads nowhere.

    A packet to a Service needs some route before kube-proxy's rules turn it to a Pod. A veth pair serves, which more
    kernels have than the dummy device. Raises `subprocess.CalledProcessError`.
    """
    _ip(
        [
            "link add outward type veth peer name nowhere",
            "link set nowhere up",
            "link set outward up",
            f"route add default dev outward src {address}",
        ]
    )
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _ip(lines: Iterable[str]) -> None:
    subprocess.run(
        ["ip", "-batch", "-"],
        input="\n".join(lines),
        text=True,
        check=True,
        timeout=STEP_SECONDS,
    )
