"""In CI nothing is skipped unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = {
    "mark": "import pytest\n@pytest.mark.skip(reason='no java')\ndef test_a(): pass\n",
    "call": "import pytest\ndef test_a(): pytest.skip('no java')\n",
    "fixture": "import pytest\n@pytest.fixture\ndef f(): pytest.skip('no java')\ndef test_a(f): pass\n",
    "module": "import pytest\npytest.skip('no java', allow_module_level=True)\n",
}


def run_pytest(folder: Path, ci: str | None) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "CI"}
    # Importing the plugins that happen to be installed would take longer than all the rest.
    env |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if ci is not None:
        env["CI"] = ci
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.ci_skips",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
    ]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("case", CASES)
def test_a_skip_fails_in_ci_and_names_its_reason(case: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(CASES[case])

    done = run_pytest(tmp_path, "true")

    assert done.returncode in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED), done.stdout
    assert "skipped, which is a failure where CI is set: no java" in done.stdout
    assert "1 skipped" not in done.stdout


@pytest.mark.parametrize("ci", [None, "", "false"])
def test_a_skip_is_only_a_skip_elsewhere(ci: str | None, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(CASES["mark"] + "def test_b(): pass\n")

    done = run_pytest(tmp_path, ci)

    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert "1 passed, 1 skipped" in done.stdout


def test_an_expected_failure_is_no_skip_in_ci(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_a(): assert False\n"
    )

    done = run_pytest(tmp_path, "true")

    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert "1 xfailed" in done.stdout
