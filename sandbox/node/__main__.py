"""The command ``python -m sandbox.node``: a real Kubernetes cluster of one node until Ctrl-C (needs root).

It prints ``KUBECONFIG=...`` when the node is Ready. All of it is gone when the command ends, however it ends. Nothing
outside is changed: the node has network, mount and pid namespaces, a control group and a temporary folder of its own,
and the API server is reached through a port of the loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sandbox.binaries import CONTROL_PLANE, NODE, binaries
from sandbox.ending import cancel_when_ending, leave_on_signals
from sandbox.image.images import archives
from sandbox.netns import NamespaceError
from sandbox.node.cgroups import CgroupError
from sandbox.node.needs import MissingError, check
from sandbox.node.outside import running
from sandbox.processes import DaemonError
from sandbox.progress import CommandError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when it was asked to end, 1 when it could not start or a part of it ended."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.node", description=__doc__)
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end also when the other end of stdin is closed"
    )
    options = parser.parse_args(argv)
    leave_on_signals()
    try:
        check()
        folder, images = binaries([*CONTROL_PLANE, *NODE]), archives()
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(_serve(folder, images, until_stdin_closes=options.until_stdin_closes))
    except (
        CgroupError,
        CommandError,
        DaemonError,
        MissingError,
        NamespaceError,
        OSError,
        TimeoutError,
    ) as error:
        print(f"The node does not run: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(folder: Path, images: Sequence[Path], *, until_stdin_closes: bool) -> None:
    began = time.monotonic()
    cancel_when_ending(until_stdin_closes=until_stdin_closes)
    async with running(folder, images) as node:
        print(f"Ready after {time.monotonic() - began:.1f} s; kubectl: {folder / 'kubectl'}", file=sys.stderr)
        print(f"KUBECONFIG={node.kubeconfig}", flush=True)
        status = await node.process.wait()
        raise DaemonError(f"it ended by itself with {status}")


if __name__ == "__main__":
    sys.exit(main())
