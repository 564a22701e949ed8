"""The import rule of pyproject.toml holds what it promises: one planted violation for each line of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = "a name above imports names below, never the other way"
CLIENT = "kubernetes_asyncio is imported by agent.act.kubeclient alone"
PURE = "what decides does no I/O and reads no clock"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "agent", tmp_path / "agent", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    argv = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def broken(output: str) -> set[str]:
    return {line.removesuffix(" BROKEN") for line in output.splitlines() if line.endswith(" BROKEN")}


def plant(folder: Path, module: str, line: str) -> None:
    file = folder / module
    file.write_text((file.read_text() if file.exists() else "") + f"\n{line}\n")


def test_the_code_keeps_it(copy: Path) -> None:
    done = lint(copy)

    assert done.returncode == 0, done.stdout
    assert "3 kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("agent/model/facts.py", "from .. import settings", LAYERS),
        ("agent/times.py", "from . import model", LAYERS),
        ("agent/settings/table.py", "from .. import decide", LAYERS),
        ("agent/decide/planted.py", "from .. import act", LAYERS),
        ("agent/act/planted.py", "from .. import tell", LAYERS),
        ("agent/sense/planted.py", "from .. import act", LAYERS),
        ("agent/tell/planted.py", "from .. import sense", LAYERS),
        ("agent/tell/planted.py", "from .. import app", LAYERS),
        ("agent/app/wiring.py", "from .. import commands", LAYERS),
        ("agent/commands.py", "from . import __main__", LAYERS),
        ("agent/stranger.py", "", LAYERS),
        ("agent/act/planted.py", "import kubernetes_asyncio", CLIENT),
        ("agent/decide/planted.py", "import time", PURE),
        ("agent/decide/planted.py", "from os import environ", PURE),
        ("agent/model/facts.py", "import asyncio", PURE),
    ],
)
def test_a_planted_violation_is_found(copy: Path, module: str, line: str, contract: str) -> None:
    for name in ("commands.py", "__main__.py"):
        (copy / "agent" / name).touch()
    plant(copy, module, line)

    done = lint(copy)

    assert done.returncode == 1, done.stdout
    assert contract in broken(done.stdout), done.stdout
