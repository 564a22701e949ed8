"""What the node takes from the machine, and how to get it."""

from __future__ import annotations

import os
import shutil

from sandbox.node.parts import CNI_PLUGINS

# program: Debian package that brings it
PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
}
PLUGINS = "containernetworking-plugins"
# where root's programs are, which a user's PATH may leave out
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])


class MissingError(Exception):
    """The machine lacks something; the message says what, and the remedy."""


def missing() -> list[str]:
    """Return the Debian packages that are not there, in alphabetical order."""
    packages = {package for program, package in PROGRAMS.items() if shutil.which(program, path=PATH) is None}
    if not (CNI_PLUGINS / "ptp").exists():
        packages.add(PLUGINS)
    return sorted(packages)


def check() -> None:
    """Raise `MissingError` unless this process may and can run a node."""
    if os.geteuid() != 0:
        raise MissingError(
            f"A node needs root (namespaces, mounts, control groups), and this is uid {os.geteuid()}."
        )
    if packages := missing():
        raise MissingError(
            f"A node needs Debian packages that are not here: apt-get install {' '.join(packages)}"
        )
