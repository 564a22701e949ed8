"""The hook's port and secret: made once, kept in the shared volume for the next life of the agent."""

from __future__ import annotations

import json
import os
import re
import socket
from contextlib import suppress
from pathlib import Path

from .files import read, temporary

KEY_FILE = "hook.json"

# Below NodePorts (30000-32767) and Linux's default ephemeral ports (32768-60999), above what servers like to use.
PORTS = range(20000, 30000)


def key(path: Path) -> tuple[int, str]:
    """The hook's port and secret: those that stand, or new ones. Two callers at once get the same."""
    standing = _standing(path)
    if standing is not None:
        return standing
    port, secret = _free_port(), os.urandom(16).hex()
    made = temporary(path, json.dumps({"port": port, "secret": secret}).encode(), 0o600)
    try:
        os.link(made, path)
    except FileExistsError:
        standing = _standing(path)
        if standing is not None:
            return standing
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)
    return port, secret


def _standing(path: Path) -> tuple[int, str] | None:
    """What the file holds; None when it is missing or holds no key.

    Raises:
        OSError: it may not be read: another user wrote it.
    """
    if path.is_symlink():
        return None
    try:
        found = json.loads(read(path, 1024))
    except (FileNotFoundError, ValueError):
        return None
    port, secret = (found.get("port"), found.get("secret")) if isinstance(found, dict) else (None, None)
    if not isinstance(port, int) or not 1 <= port <= 65535:
        return None
    return (port, secret) if isinstance(secret, str) and re.fullmatch(r"[0-9a-f]{32}", secret) else None


def _free_port() -> int:
    """A free loopback port that no outgoing connection takes: under hostNetwork the whole node uses these."""
    low, high = 1, 0
    with suppress(OSError, ValueError):
        bounds = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
        low, high = (int(bound) for bound in bounds)
    outside = [port for port in PORTS if not low <= port <= high]
    for _ in range(64 if outside else 0):
        port = outside[int.from_bytes(os.urandom(8), "big") % len(outside)]
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
