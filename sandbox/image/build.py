"""Builds a Dockerfile without an engine: its instructions are done in copies of a Debian root."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from sandbox.image import archive
from sandbox.image.dockerfile import DockerfileError, Instruction, Stage, parse
from sandbox.launch import REPOSITORY
from sandbox.progress import run

RUN_SECONDS = 900.0
# what a build in a container inherits of the machine, through its engine's settings or a proxy
PASSED = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "PIP_DEFAULT_TIMEOUT"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
# what `docker build` leaves out of the context by the same file
IGNORED = shutil.ignore_patterns("__pycache__")


@dataclass
class _Made:
    """A stage as far as it is done."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)

    def inside(self, path: str) -> Path:
        """Return where ``path`` of the image is on the machine."""
        return self.root / PurePosixPath(self.workdir, path).relative_to("/")


class Build:
    """One build: the context, where it works, and the stages so far."""

    def __init__(self, context: Path, work: Path, base: Path) -> None:
        self._context = context
        self._work = work
        self._base = base
        self._stages: dict[str, _Made] = {}

    def image(self, arguments: Mapping[str, str], name: str, place: Path) -> None:
        """Write the Dockerfile's last stage as a docker-archive of one layer.

        Raises `DockerfileError` for what is not understood and `CommandError` when a RUN fails.
        """
        stages = parse((self._context / "Dockerfile").read_text(), arguments)
        for number, stage in enumerate(stages):
            made = self._stage(stage, self._work / f"stage-{number}")
            self._stages[stage.name or str(number)] = made
        layer = self._work / "layer.tar"
        pack(made.root, layer)
        config = archive.Config(made.entrypoint, made.user, made.workdir, made.env, made.labels)
        archive.write(place, name, [layer], config)

    def _stage(self, stage: Stage, root: Path) -> _Made:
        root.mkdir()
        run(
            ["tar", "--extract", f"--file={self._base}", f"--directory={root}"],
            f"unpacking {self._base.name}",
            log=self._log,
            within=RUN_SECONDS,
        )
        made = _Made(root)
        for instruction in stage.instructions:
            self._do(instruction, made)
        return made

    @property
    def _log(self) -> Path:
        return self._work / "log"

    def _do(self, instruction: Instruction, made: _Made) -> None:
        match instruction.word:
            case "WORKDIR":
                made.workdir = str(PurePosixPath(made.workdir, instruction.rest))
                made.inside(".").mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy(instruction, made)
            case "ENV":
                made.env.update(instruction.pairs())
            case "LABEL":
                made.labels.update(instruction.pairs())
            case "USER":
                made.user = instruction.rest
            case "ENTRYPOINT":
                made.entrypoint = instruction.argv()
            case "RUN":
                self._run(instruction.rest, made)

    def _copy(self, instruction: Instruction, made: _Made) -> None:
        words = instruction.words()
        source_root = self._context
        if words[0].startswith("--from="):
            source_root = self._stages[words.pop(0).removeprefix("--from=")].root
        elif words[0].startswith("--"):
            raise DockerfileError(f"COPY {words[0]} is not understood here")
        *sources, target = words
        for source in sources:
            path = source_root / source.strip("/")
            place = made.inside(target)
            if path.is_dir():
                shutil.copytree(
                    path,
                    place,
                    symlinks=True,
                    dirs_exist_ok=True,
                    ignore=IGNORED if source_root == self._context else None,
                )
            else:
                place = place / path.name if target.endswith("/") else place
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)

    def _run(self, command: str, made: _Made) -> None:
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        env |= {name: os.environ[name] for name in PASSED if name in os.environ} | made.env
        chroot = [sys.executable, "-m", "sandbox.image.chroot"]
        argv = [*chroot, str(os.getpid()), str(made.root), made.workdir, "/bin/sh", "-c", command]
        run(argv, f"RUN {command[:60]}", log=self._log, within=RUN_SECONDS, cwd=REPOSITORY, env=env)


def pack(root: Path, layer: Path) -> None:
    """Write all of a root into a layer; what a build has mounted or left in passing stays out."""
    with tarfile.open(layer, "w") as out:
        out.add(root, ".", filter=_kept)


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    top = PurePosixPath(entry.name).parts[:1]
    entry.mtime = 0
    return None if entry.isdev() or (top in {("tmp",), ("proc",), ("dev",)} and not entry.isdir()) else entry
