"""The programs of a Kubernetes cluster, built from their Go modules once and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

from sandbox.cache import cache_dir, locked, workspace
from sandbox.golang import find_go
from sandbox.progress import run

READY_FOLDER = "SPARK_UI_SANDBOX_BIN"
MODULE = Path(__file__).parent / "controlplane"
# kube-apiserver takes five minutes on two slow cores with empty caches
BUILD_SECONDS = 1800.0

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
NODE = ("kubelet", "kube-proxy", "kube-scheduler")
PACKAGES = {name: f"k8s.io/kubernetes/cmd/{name}" for name in (*CONTROL_PLANE, *NODE) if name != "etcd"} | {
    "etcd": "go.etcd.io/etcd/server/v3"
}


def kubernetes_version() -> str:
    """Return the version of Kubernetes that is built, as ``go.mod`` requires it (``v1.36.3``)."""
    found = re.search(
        r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE
    )
    if found is None:
        raise ValueError(f"{MODULE / 'go.mod'} requires no k8s.io/kubernetes")
    return found[1]


def binaries(names: Iterable[str] = CONTROL_PLANE) -> Path:
    """Return a folder that holds the programs ``names``; build those that are missing.

    ``SPARK_UI_SANDBOX_BIN`` names a folder of ready ones and is then used as it is: FileNotFoundError when one is
    missing there. A build takes 8 minutes on two cores with empty caches and needs 5 GB; it raises `CommandError`
    when it fails and TimeoutError when another build is not done in time.
    """
    wanted = list(names)
    ready = os.environ.get(READY_FOLDER)
    if ready:
        absent = missing(Path(ready), wanted)
        if absent:
            raise FileNotFoundError(
                f"{READY_FOLDER}={ready} has no {', '.join(absent)}: "
                f"put Kubernetes {kubernetes_version()} binaries there, or unset it to have them built"
            )
        return Path(ready)
    folder = cache_dir() / "controlplane" / f"{kubernetes_version()}-{_fingerprint()}"
    folder.mkdir(parents=True, exist_ok=True)
    if missing(folder, wanted):
        with locked(folder / "lock", "building Kubernetes", within=BUILD_SECONDS * len(wanted)):
            absent = missing(folder, wanted)
            for number, name in enumerate(absent, 1):
                _build(name, f"building {name} ({number} of {len(absent)})", folder)
    return folder


def missing(folder: Path, names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that are no executable files in ``folder``."""
    return [name for name in names if not os.access(folder / name, os.X_OK)]


def _flags() -> list[str]:
    # without a version the API server calls itself v0.0.0 and clients complain
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    defines = [f"-X k8s.io/component-base/version.{key}={value}" for key, value in stamps.items()]
    return ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", " ".join(["-s -w", *defines])]


def _fingerprint() -> str:
    parts = [(MODULE / "go.mod").read_bytes(), (MODULE / "go.sum").read_bytes()]
    parts.append("\0".join([*_flags(), platform.system(), platform.machine()]).encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def _build(name: str, what: str, folder: Path) -> None:
    go = find_go()
    # the user's own flags and toolchain switching could change what is built
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    with workspace(folder) as fresh:
        built = fresh / name
        run(
            [go, "build", *_flags(), "-o", built, PACKAGES[name]],
            what,
            log=folder / f"{name}.log",
            within=BUILD_SECONDS,
            cwd=MODULE,
            env={**os.environ, **settings, "GOTMPDIR": str(fresh)},
        )
        built.rename(folder / name)
