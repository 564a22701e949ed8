"""Where the programs of the control plane come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.binaries import CONTROL_PLANE, binaries


def program(folder: Path, name: str) -> None:
    """Make an executable file."""
    (folder / name).touch(mode=0o755)


def test_a_folder_of_ready_programs_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CONTROL_PLANE:
        program(tmp_path, name)
    monkeypatch.setenv("SPARK_UI_SANDBOX_BIN", str(tmp_path))

    assert binaries() == tmp_path


def test_a_program_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "etcd")
    (tmp_path / "kubectl").touch(mode=0o644)
    monkeypatch.setenv("SPARK_UI_SANDBOX_BIN", str(tmp_path))

    with pytest.raises(FileNotFoundError, match=r"has no kube-apiserver, kubectl: put Kubernetes v1\.36"):
        binaries(["etcd", "kube-apiserver", "kubectl"])


def test_programs_are_kept_outside_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_UI_SANDBOX_BIN", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert binaries([]).is_relative_to(tmp_path / "spark-ui-agent")
