"""The command ``python -m sandbox.cluster``: a real Kubernetes control plane on the loopback until Ctrl-C.

It prints ``KUBECONFIG=...`` when it is ready. There is no kubelet: Pods and Nodes are given through the API. All
of it is gone when the command ends, however it ends.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sandbox.binaries import binaries
from sandbox.ending import cancel_when_ending, leave_on_signals
from sandbox.processes import DaemonError
from sandbox.progress import CommandError
from sandbox.supervisor import running

_PRIORITY = -10  # a nice value; needs root


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when it was asked to end, 1 when it could not start or a component ended."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.cluster", description=__doc__)
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="one more name or address for the API server's certificate (may be repeated)",
    )
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end also when the other end of stdin is closed"
    )
    options = parser.parse_args(argv)
    leave_on_signals()
    try:
        folder = binaries()
        _ahead()
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(_serve(folder, options.host, until_stdin_closes=options.until_stdin_closes))
    except (CommandError, DaemonError, OSError, TimeoutError) as error:
        print(f"The control plane does not run: {error}", file=sys.stderr)
        return 1
    return 0


def _ahead() -> None:
    """Run etcd and the rest ahead of the drivers: a test takes its instants from a watch, which must not lag."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)


async def _serve(folder: Path, hosts: Sequence[str], *, until_stdin_closes: bool) -> None:
    began = time.monotonic()
    cancel_when_ending(until_stdin_closes=until_stdin_closes)
    async with running(folder, hosts) as cluster:
        print(f"ready after {time.monotonic() - began:.1f} s; kubectl: {folder / 'kubectl'}", file=sys.stderr)
        print(f"KUBECONFIG={cluster.layout.kubeconfig}", flush=True)
        await cluster.meanwhile(asyncio.Event().wait())


if __name__ == "__main__":
    sys.exit(main())
