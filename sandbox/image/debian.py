"""Debian roots by mmdebstrap, each made once and kept as a tar in the user's cache."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from sandbox.cache import cache_dir, locked, workspace
from sandbox.progress import CommandError, run

SUITE = "bookworm"
BUILD_SECONDS = 1200.0

PYTHON = ("ca-certificates", "python3", "python3-pip", "python3-venv")
SPARK = ("ca-certificates", "openjdk-17-jre-headless", "procps", "python3", "tini")

# not /usr/share/man: the JRE links into it when it is configured
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*")
# Python's own images let pip install anywhere, and the Dockerfile is written for those
_UNMANAGED = 'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED'
# as the account of Spark's own images
_ACCOUNT = 'echo "spark:x:185:185:spark:/opt/spark/work-dir:/bin/false" >>"$1/etc/passwd"; echo "spark:x:185:" >>"$1/etc/group"'
_HOOKS = (_UNMANAGED, _ACCOUNT)


def root(packages: Sequence[str]) -> Path:
    """Return an uncompressed tar of a minimal Debian with ``packages``; about two minutes for the first caller.

    Raises `CommandError` when mmdebstrap is missing or fails.
    """
    options = [f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT]
    options += [f"--customize-hook={hook}" for hook in _HOOKS]
    options += ["--variant=essential", f"--include={','.join(packages)}"]
    base = cache_dir() / "debian"
    base.mkdir(exist_ok=True)
    key = hashlib.sha256("\0".join([SUITE, *options]).encode()).hexdigest()[:12]
    place = base / f"{SUITE}-{key}.tar"
    if place.exists():
        return place
    with locked(base / "lock", "making a Debian root", within=2 * BUILD_SECONDS):
        if not place.exists():
            tool = shutil.which("mmdebstrap")
            if tool is None:
                raise CommandError("found no mmdebstrap; as root: apt-get install mmdebstrap")
            with workspace(base) as fresh:
                made = fresh / "root.tar"
                what = f"making a Debian root with {', '.join(packages)}"
                run([tool, *options, SUITE, made], what, log=base / "log", within=BUILD_SECONDS)
                made.rename(place)
    return place
