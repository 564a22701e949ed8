"""Images as `docker save` writes them: a tar of layers, one configuration and a manifest (docker-archive).

`ctr images import` takes such an archive, and so does every engine's `load`.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# what Go and so the image formats call the machines that we know of
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# the same input must give the same archive, so no clock is asked
CREATED = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Config:
    """What an image says about the processes made from it."""

    entrypoint: Sequence[str] = ()
    user: str = ""
    workdir: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, object]:
        """Return the OCI image configuration's ``config``."""
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **self.env}
        return {
            "Entrypoint": list(self.entrypoint),
            "User": self.user,
            "WorkingDir": self.workdir,
            "Env": [f"{name}={value}" for name, value in env.items()],
            "Labels": dict(self.labels),
        }


def digest(file: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def write(archive: Path, name: str, layers: Sequence[Path], config: Config) -> None:
    """Write the image ``name`` (``repository:tag``) of uncompressed tar ``layers``, the lowest first."""
    digests = [digest(layer) for layer in layers]
    machine = platform.machine()
    body = {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "created": CREATED,
        "config": config.body(),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one}" for one in digests]},
        "history": [{"created": CREATED} for _ in digests],
    }
    text = json.dumps(body).encode()
    places = [f"{one}/layer.tar" for one in digests]
    manifest = {
        "Config": f"{hashlib.sha256(text).hexdigest()}.json",
        "RepoTags": [name],
        "Layers": places,
    }
    with tarfile.open(archive, "w") as out:
        _add(out, manifest["Config"], text)
        for place, layer in zip(places, layers, strict=True):
            out.add(layer, arcname=place)
        _add(out, "manifest.json", json.dumps([manifest]).encode())


def _add(out: tarfile.TarFile, name: object, content: bytes) -> None:
    entry = tarfile.TarInfo(str(name))
    entry.size = len(content)
    out.addfile(entry, io.BytesIO(content))
