"""Run a command in another root: ``python -m sandbox.image.chroot PARENT ROOT WORKDIR COMMAND...`` (needs root).

It sees the machine's network with its name servers and certificates, as a build in a container does; its mounts are
its own, and it dies with PARENT.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sandbox.enter import CLONE_NEWNS, MS_BIND, MS_PRIVATE, MS_REC, die_with_parent, mount, unshare

# shown inside where both sides have them
SHOWN = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")


def main() -> None:
    """Arrange the mounts, enter, become the command."""
    parent, root, workdir, command = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:]
    die_with_parent(parent)
    unshare(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("/dev", f"{root}/dev", None, MS_BIND | MS_REC)
    mount("proc", f"{root}/proc", b"proc", 0)
    for name in SHOWN:
        if Path(name).exists():
            place = Path(f"{root}{name}")
            place.touch()
            mount(str(Path(name).resolve()), str(place), None, MS_BIND)
    os.chroot(root)
    os.chdir(workdir)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
