"""Long steps, locks and temporary folders of the sandbox."""

from __future__ import annotations

import itertools
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from sandbox.cache import locked, workspace
from sandbox.progress import CommandError, Progress, run
from sandbox.scratch import scratch_folder
from tests.sandbox.processes import survivors

# tells its own id and that of a child, interrupts whoever started it as Ctrl-C does, and stays
INTERRUPTING = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(os.getpid(), child.pid, flush=True)
os.kill(os.getppid(), signal.SIGINT)
time.sleep(60)
"""


def test_a_step_that_fails_ends_its_message_with_what_it_said(tmp_path: Path) -> None:
    script = "print('no such module'); raise SystemExit(3)"

    with pytest.raises(CommandError, match=r"building: \S+ ended with 3\n +no such module$"):
        run([sys.executable, "-c", script], "building", log=tmp_path / "log", within=30)


def test_a_step_that_is_interrupted_is_killed_with_its_children(tmp_path: Path) -> None:
    log = tmp_path / "log"

    # A shell's background job is started with SIGINT ignored, and Python then leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run([sys.executable, "-c", INTERRUPTING], "building", log=log, within=30)
    finally:
        signal.signal(signal.SIGINT, before)

    pids = [int(pid) for pid in log.read_text().split()]
    assert len(pids) == 2
    assert survivors(pids) == set()


def test_a_step_out_of_time_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="building: not done after 0 s"):
        run([sys.executable, "-c", "import time; time.sleep(60)"], "building", log=tmp_path / "log", within=0)


def test_progress_is_said_every_ten_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count(100)
    monkeypatch.setattr("time.monotonic", lambda: float(next(seconds)))
    progress = Progress("building kubectl (4 of 4)")
    for _ in range(25):
        progress.tick()

    said = capsys.readouterr().err.splitlines()
    # the clock moves a second with each look, and a line takes one look more
    assert said == [f"building kubectl (4 of 4), {passed} s ..." for passed in (11, 21)]


def test_a_lock_keeps_a_second_one_out_until_it_is_free(tmp_path: Path) -> None:
    file = tmp_path / "lock"

    with (
        locked(file, "building", within=1),
        pytest.raises(TimeoutError, match="building: another process has held"),
        locked(file, "building", within=0),
    ):
        pytest.fail("two held the lock")
    with locked(file, "building", within=0):
        assert file.exists()


def test_a_workspace_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    left, placed = tmp_path / "new-left", tmp_path / "kubectl"
    left.mkdir()
    placed.touch()

    with workspace(tmp_path) as folder:
        there = set(tmp_path.iterdir())

    assert there == {placed, folder}
    assert set(tmp_path.iterdir()) == {placed}


def test_folders_of_the_dead_are_swept_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead, stranger = tmp_path / "spark-ui-agent-test-1", tmp_path / "spark-ui-other-1"
    dead.mkdir()
    stranger.mkdir()

    with scratch_folder("test") as first, scratch_folder("test") as second:
        assert first.is_dir()
        assert second.is_dir()
        assert first != second
        assert not dead.exists()
        assert stranger.is_dir()
    assert not first.exists()
    assert not second.exists()
