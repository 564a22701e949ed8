"""Pytest plugin: where the environment says CI, a test that would be skipped fails instead.

A missing prerequisite (Java, root, a cached build) must not turn the real parts of the tests off unseen.
`ALLOWED` holds the reasons that are accepted even there.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

ALLOWED: frozenset[str] = frozenset()


def in_ci() -> bool:
    """True when the variable CI is set to anything but an empty string, 0 or false, as CI systems do."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    expected = isinstance(report, pytest.TestReport) and hasattr(report, "wasxfail")
    if not report.skipped or expected or not in_ci():
        return
    reason = _reason(report)
    if reason not in ALLOWED:
        report.outcome = "failed"
        report.longrepr = f"skipped, which is a failure where CI is set: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one, and say its reason."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that is skipped as a whole."""
    report = yield
    _refuse_skip(report)
    return report
