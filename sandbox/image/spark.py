"""Image of a released Spark, of which driver and executor Pods are made, and the pause image of every Pod."""

from __future__ import annotations

import tarfile
from pathlib import Path

from sandbox.image import archive, debian
from sandbox.image.store import content_key, kept
from sandbox.progress import Progress
from sandbox.spark.install import spark_home

# user and group of Spark's own images
USER = 185
PAUSE = "localhost/pause:1"
TINI = "/usr/bin/tini"
ENTRYPOINT = [TINI, "-s", "--", "python3", "/opt/entry.py"]
HERE = Path(__file__).parent
# in the image: what stands in the checkout
FILES = {"opt/entry.py": HERE / "entry.py", "opt/job.py": HERE / "job.py"}
JOB = "local:///opt/job.py"


def spark_name(version: str) -> str:
    """Return the name of the image of a Spark version, as a Pod spells it."""
    return f"localhost/spark:{version}"


def spark_image(version: str) -> Path:
    """Return a docker-archive of Spark ``version``, installed and packed for the first caller.

    Raises what `spark_home` and `debian.root` raise.
    """
    home, base = spark_home(version), debian.root(debian.SPARK)
    config = archive.Config(
        entrypoint=ENTRYPOINT,
        user=f"{USER}",
        workdir="/opt/spark/work-dir",
        env={"SPARK_HOME": "/opt/spark", "LANG": "C.UTF-8"},
    )

    def make(place: Path) -> None:
        layer = place.with_name("spark-layer.tar")
        _pack(layer, home, f"packing Spark {version}")
        archive.write(place, spark_name(version), [base, layer], config)

    return kept(f"spark-{version}", content_key(repr(config), base.name, *FILES.values()), make)


def pause_image() -> Path:
    """Return a docker-archive of what holds a Pod's namespaces; it consists of Spark's Debian layer."""
    base = debian.root(debian.SPARK)
    # containerd ends it by SIGKILL, so tini is there for reaping alone
    config = archive.Config(entrypoint=[TINI, "--", "/usr/bin/sleep", "infinity"])

    def make(place: Path) -> None:
        archive.write(place, PAUSE, [base], config)

    return kept("pause", content_key(repr(config), base.name), make)


def _pack(layer: Path, home: Path, what: str) -> None:
    progress = Progress(what)
    progress.say()
    with tarfile.open(layer, "w") as out:
        for place, file in FILES.items():
            out.add(file, place, filter=_owned_by_root)
        for path in sorted(home.rglob("*")):
            progress.tick()
            inside = path.relative_to(home)
            if path.suffix != ".pyc" and path.name != "__pycache__":
                out.add(path, f"opt/spark/{inside}", recursive=False, filter=_owned_by_root)
        for folder, owner in (("conf", 0), ("work-dir", USER)):
            entry = tarfile.TarInfo(f"opt/spark/{folder}")
            entry.type, entry.mode, entry.uid = tarfile.DIRTYPE, 0o775, owner
            out.addfile(entry)
        # by this file Spark's scripts tell a distribution from a source tree
        out.addfile(tarfile.TarInfo("opt/spark/RELEASE"))


def _owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
