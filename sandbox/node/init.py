"""Process 1 of the node: ``python -m sandbox.node.init PARENT NETWORK_FD COMMAND...`` (needs root).

It makes the node's mount and pid namespaces inside the network namespace of the given descriptor, runs the command there
and reaps what containers leave behind. When it dies, the kernel kills every process of the node, however deep; and it
dies with PARENT.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence
from typing import NoReturn

from sandbox.enter import (
    CLONE_NEWNS,
    MS_PRIVATE,
    MS_REC,
    die_with_parent,
    mount,
    set_network_namespace,
    unshare,
)

CLONE_NEWPID = 0x20000000


def main() -> NoReturn:
    """Split into the process that waits outside and process 1; both exit as the command did."""
    parent, network, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    die_with_parent(parent)
    set_network_namespace(network)
    os.close(network)
    unshare(CLONE_NEWNS | CLONE_NEWPID)
    alive, hold = os.pipe()
    if (first := os.fork()) == 0:
        os.close(hold)
        die_with_parent()
        # the parent may have died before the line above; its end of the pipe is then closed
        if select.select([alive], [], [], 0)[0]:
            sys.exit("the parent process has already ended")
        os.close(alive)
        _first(command)
    _, status = os.waitpid(first, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


def _first(command: Sequence[str]) -> NoReturn:
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("proc", "/proc", b"proc", 0)
    if (main_process := os.fork()) == 0:
        os.execvp(command[0], list(command))
    while True:
        pid, status = os.wait()
        if pid == main_process:
            # not sys.exit: nothing here is to be tidied up, the kernel does it
            os._exit(abs(os.waitstatus_to_exitcode(status)))


if __name__ == "__main__":
    main()
