"""`python -m tests.support.measured_agent run`: the agent with its coverage recorded, into the working folder."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path

from coverage import Coverage


def collect(folder: Path) -> None:
    """Hand what an agent recorded in ``folder`` to the measurement that runs in this process, which combines it."""
    measuring = Coverage.current()
    if measuring is not None:
        for file in folder.glob(".coverage.*"):
            shutil.move(file, Path(measuring.config.data_file).resolve().parent / file.name)


def module() -> str:
    """What to start as the agent: this module while coverage is measured, else the agent itself."""
    return "agent" if Coverage.current() is None else __name__


def _main() -> int:
    agent = Path(__file__).parents[2] / "agent"
    measuring = Coverage(
        data_file=str(Path.cwd() / ".coverage"),
        data_suffix=True,
        branch=True,
        source=[str(agent)],
        config_file=False,
    )
    measuring.start()
    try:
        run = importlib.import_module("agent.__main__").main  # only now, so that its imports count
        return int(run())
    finally:
        measuring.stop()
        measuring.save()


if __name__ == "__main__":
    sys.exit(_main())
