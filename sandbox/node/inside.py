"""The node from within: ``python -m sandbox.node.inside`` runs in the namespaces that `sandbox.node.init` makes.

It prints one line when the node is Ready, and ends when its stdin is closed, on a signal, or when a daemon ends.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from sandbox.apiclient import ApiClient, Object
from sandbox.components import Layout
from sandbox.ending import cancel_when_ending, leave_on_signals
from sandbox.node.machine import arrange_mounts, arrange_network
from sandbox.node.parts import API_PORT, Node
from sandbox.pki import Pki
from sandbox.processes import DaemonError, Daemons
from sandbox.supervisor import bring_up, until
from sandbox.waiting import wait_until

READY = "READY"
READY_SECONDS = 90.0
IMPORT_SECONDS = 300.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the node; return 0 when it was asked to end, 1 when it could not start or a daemon ended."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.node.inside", description=__doc__)
    parser.add_argument("--binaries", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--cgroup", required=True)
    parser.add_argument("--image", type=Path, action="append", default=[])
    options = parser.parse_args(argv)
    leave_on_signals()
    node = Node(options.binaries, Layout(options.folder), options.address, options.cgroup)
    try:
        arrange_mounts(options.folder)
        arrange_network(options.address)
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(_serve(node, options.image))
    except (DaemonError, OSError, TimeoutError) as error:
        print(f"The node does not run: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(node: Node, images: Sequence[Path]) -> None:
    cancel_when_ending(until_stdin_closes=True)
    async with Daemons() as daemons:
        await daemons.start(node.containerd(), node.layout.log("containerd"))
        importing = asyncio.create_task(daemons.meanwhile(_import(node, images)))
        api = await bring_up(daemons, node.binaries, node.layout, API_PORT, node_ip=node.address)
        await importing
        pki, url = Pki.load(node.layout.pki), api.access.url
        await daemons.start(node.kubelet(pki, url), node.layout.log("kubelet"))
        await daemons.start(node.proxy(pki, url), node.layout.log("kube-proxy"))
        await daemons.start(node.scheduler(pki, url), node.layout.log("kube-scheduler"))
        await daemons.meanwhile(_ready(api))
        print(READY, flush=True)
        await daemons.meanwhile(asyncio.Event().wait())


async def _ready(api: ApiClient) -> None:
    await wait_until(api, "/api/v1/nodes", lambda nodes: any(map(_is_ready, nodes)), within=READY_SECONDS)


def _is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    tainted = any(taint["effect"] == "NoSchedule" for taint in node["spec"].get("taints", []))
    return not tainted and any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def _import(node: Node, images: Sequence[Path]) -> None:
    async with asyncio.timeout(IMPORT_SECONDS):
        await until(node.containerd_socket.exists)
        for image in images:
            process = await asyncio.create_subprocess_exec(
                *node.ctr("images", "import", image),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            said, _ = await process.communicate()
            if process.returncode != 0:
                raise DaemonError(
                    f"containerd does not take {image}: {said.decode(errors='replace').strip()}"
                )


if __name__ == "__main__":
    sys.exit(main())
