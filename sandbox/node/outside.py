"""The node from without: what it stands in is made here, and removed when it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.components import Layout
from sandbox.launch import REPOSITORY
from sandbox.netns import NetworkNamespace
from sandbox.node import cgroups
from sandbox.node.inside import READY
from sandbox.node.needs import PATH
from sandbox.node.parts import API_PORT
from sandbox.pki import Pki
from sandbox.processes import DaemonError
from sandbox.relay import relay
from sandbox.scratch import PREFIX, scratch_folder

KIND = "node"
START_SECONDS = 300.0
END_SECONDS = 20.0
ENTRANCE = "entrance.json"


@dataclass(frozen=True)
class Outside:
    """Where a running node is reached: its files, and the process whose end is its end."""

    layout: Layout
    process: asyncio.subprocess.Process

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator, as seen from the machine's own network."""
        return self.layout.folder / "outside.kubeconfig"


@dataclass(frozen=True)
class Entrance:
    """How root gets from without into the node: paths in /proc that last as long as it does."""

    network: Path
    files: Path

    @classmethod
    def read(cls, folder: Path) -> Entrance:
        """Return the entrance of the node whose files are in ``folder``."""
        told = json.loads((folder / ENTRANCE).read_text())
        return cls(Path(told["network"]), Path(told["files"]))

    def write(self, folder: Path) -> None:
        """Tell it to `read`."""
        (folder / ENTRANCE).write_text(json.dumps({"network": str(self.network), "files": str(self.files)}))


@contextlib.asynccontextmanager
async def running(binaries: Path, images: Sequence[Path]) -> AsyncIterator[Outside]:
    """Run a cluster of one node, with ``images`` (docker-archives) on it; inside the block it is Ready.

    Raises `CgroupError`, `NamespaceError` (both say the remedy), `DaemonError` when it ends early, TimeoutError when it
    is not Ready in five minutes.
    """
    with scratch_folder(KIND) as folder, NetworkNamespace.create() as network:
        # what is in it is reached by root alone, but mounts of it are for any uid in a Pod
        folder.chmod(0o711)
        cgroups.sweep(f"{PREFIX}{KIND}-", {one.name for one in folder.parent.glob(f"{PREFIX}{KIND}-*")})
        with cgroups.group(folder.name):
            layout = Layout(folder)
            process = await _start(binaries, folder, network, images)
            try:
                await _until_ready(process)
                # not its loopback: the kubelet drops what comes there from another address
                async with relay(None, 0, network.address, API_PORT, target_namespace=network) as way:
                    outside = Outside(layout, process)
                    pki = Pki.load(layout.pki)
                    pki.kubeconfig(outside.kubeconfig, f"https://127.0.0.1:{way.port}", layout.admin)
                    network_file = Path(f"/proc/{os.getpid()}/fd/{network.fd}")
                    Entrance(network_file, _first(process) / "root").write(folder)
                    yield outside
            finally:
                await _end(process)


async def _start(
    binaries: Path, folder: Path, network: NetworkNamespace, images: Sequence[Path]
) -> asyncio.subprocess.Process:
    options = [
        f"--binaries={binaries}",
        f"--folder={folder}",
        f"--address={network.address}",
        f"--cgroup={folder.name}",
    ]
    options += [f"--image={image}" for image in images]
    python = [sys.executable, "-m"]
    init = [*python, "sandbox.node.init", str(os.getpid()), str(network.fd)]
    return await asyncio.create_subprocess_exec(
        *init,
        *python,
        "sandbox.node.inside",
        *options,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        pass_fds=(network.fd,),
        cwd=REPOSITORY,
        env={**os.environ, "PATH": PATH},
        # Ctrl-C on a terminal is for us, who then end it in order
        process_group=0,
    )


async def _until_ready(process: asyncio.subprocess.Process) -> None:
    if process.stdout is None:
        raise ValueError("the process has no pipe for its output")
    async with asyncio.timeout(START_SECONDS):
        line = await process.stdout.readline()
    if line.decode().strip() != READY:
        raise DaemonError("its messages are above")


def _first(process: asyncio.subprocess.Process) -> Path:
    """Return the folder in /proc of the node's process 1, the only child of the process that waits for it."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return Path("/proc", children[0])


async def _end(process: asyncio.subprocess.Process) -> None:
    # when stdin is closed process 1 ends, and with it every process of the node, before this one does
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
