"""A released Spark from PyPI, laid out as SPARK_HOME in the user's cache.

PyPI has PySpark as source distributions that carry Spark's jars. pip downloads and checks them against
hashes; unpacking just what a driver needs takes a third of the time that pip takes to build and install a wheel.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from sandbox.cache import cache_dir, locked
from sandbox.progress import Progress, run

REQUIREMENTS = Path(__file__).parent.parent.parent / "requirements"
VERSIONS = ("3.5.9", "4.1.4", "4.3.0")
INSTALL_SECONDS = 1200.0

# parts of the source distribution -> places in SPARK_HOME; the rest (examples, data, licences) stays packed
_PLACES = {
    "deps/bin": "bin",
    "deps/sbin": "sbin",
    "deps/jars": "jars",
    "pyspark": "python/pyspark",
    "lib": "python/lib",
}


def spark_home(version: str) -> Path:
    """Return the SPARK_HOME of a released version, installed into the cache by the first caller.

    Raises `ValueError` for a version without a requirements file, `CommandError` when pip fails (its last
    lines are in the message), `TimeoutError` when another process installs for too long.
    """
    requirements = REQUIREMENTS / f"pyspark-{version}.txt"
    if not requirements.exists():
        raise ValueError(f"Spark {version} is not one of {', '.join(VERSIONS)} (no {requirements.name})")
    base = cache_dir() / "spark"
    base.mkdir(exist_ok=True)
    place = base / version
    if place.exists():
        return place
    with locked(base / f"{version}.lock", f"installing Spark {version}", within=INSTALL_SECONDS):
        if not place.exists():
            # what an installer that was killed has left; nobody else is at work under this lock
            for abandoned in base.glob(f"new-{version}-*"):
                shutil.rmtree(abandoned)
            with tempfile.TemporaryDirectory(dir=base, prefix=f"new-{version}-") as folder:
                _install(version, requirements, Path(folder)).rename(place)
    return place


def _install(version: str, requirements: Path, folder: Path) -> Path:
    log, downloads, home = folder / "log", folder / "downloads", folder / "home"
    options = ["--no-deps", "--require-hashes", "--no-cache-dir", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "download"]
    command = [*pip, *options, "--dest", str(downloads), "--requirement", str(requirements)]
    run(command, f"downloading Spark {version} from PyPI (about 450 MB)", log=log, within=INSTALL_SECONDS)
    progress = Progress(f"unpacking Spark {version}")
    progress.say()
    return unpack(downloads, home, progress)


def unpack(downloads: Path, home: Path, progress: Progress) -> Path:
    """Lay the downloaded archives of pyspark and py4j out at ``home``, which is returned."""
    for archive in downloads.glob("pyspark-*.tar.gz"):
        with tarfile.open(archive) as contents:
            for member in contents:
                place = _place(member.name)
                if place is not None and member.isfile():
                    member.name = place
                    contents.extract(member, home, filter="data")
                    progress.tick()
    for wheel in downloads.glob("py4j-*.whl"):
        with zipfile.ZipFile(wheel) as package:
            package.extractall(home / "python")
    # drivers run as other users too
    home.chmod(0o755)
    return home


def _place(name: str) -> str | None:
    """Map a path in the archive (``pyspark-4.1.4/deps/jars/x.jar``) to one in SPARK_HOME."""
    inside = PurePosixPath(*PurePosixPath(name).parts[1:])
    for part, place in _PLACES.items():
        if inside.is_relative_to(part):
            return str(PurePosixPath(place) / inside.relative_to(part))
    return None


if __name__ == "__main__":
    for wanted in sys.argv[1:] or VERSIONS:
        print(spark_home(wanted))
