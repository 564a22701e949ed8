"""Build the environment that the image ships: the locked dependencies, the agent's wheel, bytecode, nothing else.

    python scripts/image_env.py /opt/spark-ui-agent

The Dockerfile, the packaging tests and the footprint measurement all run this, so that what is tested and measured is
what is shipped. Standard library alone: it runs in the bare base image.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "agent")
INSTALL_SECONDS = 600.0
STEP_SECONDS = 120.0

# Below site-packages; none of it is ever imported by the agent. kubernetes_asyncio's 768 models and 65 APIs are two
# thirds of the whole: agent/act/kubeclient.py loads three of its modules past the package's __init__. `prove` fails the
# build if that does not hold for the locked version.
UNUSED = (
    "**/*.pyi",
    "**/*.pyx",
    "**/*.pxd",
    "**/*.pxi",
    "**/*.c",
    "**/*.h",
    "**/tests",
    "kubernetes_asyncio/client/api/*_api.py",
    "kubernetes_asyncio/client/models/[!_]*.py",
    "kubernetes_asyncio/client/test_*.py",
    "kubernetes_asyncio/dynamic",
    "kubernetes_asyncio/leaderelection",
    "kubernetes_asyncio/stream",
    "kubernetes_asyncio/utils",
    "kubernetes_asyncio/watch",
)


class BuildError(Exception):
    """A step failed; the message names it and ends with what it said."""


def run(what: str, *argv: str | Path, within: float = STEP_SECONDS) -> str:
    """Run one step and return what it printed. Raises `BuildError` when it fails or takes too long."""
    began = time.monotonic()
    print(f"{what} ...", file=sys.stderr, flush=True)
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=within, check=False
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{what}: not done after {within:.0f} s") from None
    if done.returncode != 0:
        raise BuildError(f"{what}: {argv[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{what}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return done.stdout


def build_wheel(pip: Path, folder: Path) -> Path:
    """Build the agent's wheel from a copy of the sources, so that the checkout stays clean, and return its file."""
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    run(
        "wheel",
        pip,
        "wheel",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "-w",
        folder / "wheel",
        source,
    )
    (wheel,) = (folder / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    if strangers := {top for top in tops if top != "agent" and not top.endswith(".dist-info")}:
        raise BuildError(f"wheel: holds more than the agent: {', '.join(sorted(strangers))}")
    return wheel


def slim(packages: Path) -> None:
    """Delete what `UNUSED` names."""
    for pattern in UNUSED:
        for path in sorted(packages.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def prove(destination: Path) -> None:
    """Load all that `run` loads from what is left, and require kubernetes_asyncio's models to be left out."""
    code = (
        "import sys; import agent.app, agent.commands, agent.act.kubeclient as client; client.load_client();"
        "heavy = [m for m in sys.modules if m.startswith('kubernetes_asyncio.client.models.')];"
        "sys.exit(f'kubernetes_asyncio was loaded whole ({len(heavy)} models)' if heavy else 0)"
    )
    run("prove", destination / "bin" / "python", "-I", "-B", "-c", code)
    run("version", destination / "bin" / "spark-ui-agent", "--version")


def build(destination: Path) -> None:
    """Make the environment at `destination`, replacing what is there. Raises `BuildError`."""
    with tempfile.TemporaryDirectory(prefix="spark-ui-agent-build-") as name:
        folder = Path(name)
        run("tools", sys.executable, "-m", "venv", folder / "tools")
        pip = folder / "tools" / "bin" / "pip"
        locked = ("--quiet", "--no-input", "--no-deps", "--require-hashes", "-r")
        run(
            "build tools",
            pip,
            "install",
            *locked,
            ROOT / "requirements" / "build.txt",
            within=INSTALL_SECONDS,
        )
        wheel = build_wheel(pip, folder)
        run("environment", sys.executable, "-m", "venv", "--clear", "--without-pip", destination)
        into = (pip, "--python", destination / "bin" / "python", "install", "--no-compile")
        run("dependencies", *into, *locked, ROOT / "requirements" / "agent.txt", within=INSTALL_SECONDS)
        run("agent", *into, "--quiet", "--no-deps", "--no-index", wheel)
    (packages,) = destination.glob("lib/python3.*/site-packages")
    slim(packages)
    # anew also where a tool has imported a module while it installed: rich in pip does
    compile_all = ("-m", "compileall", "-q", "-f", "-j", "0", "--invalidation-mode", "unchecked-hash")
    run("bytecode", destination / "bin" / "python", *compile_all, packages)
    prove(destination)


def main() -> int:
    """Build from the command line: 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("destination", type=Path)
    try:
        build(parser.parse_args().destination.resolve())
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
