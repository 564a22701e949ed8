"""What holds for every test: the sandbox's fixtures, no silent skip in CI, repeatable random examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "sandbox.pytest_plugin",
    "tests.ci_skips",
    "tests.history.options",
    "tests.e2e.options",
]

SPARK = Path(__file__).parent / "spark"

# `make test` must say the same each time; new examples are what `make soak` is for. A deadline per example
# would assert on wall-clock time, and "too slow" depends on what else the machine does.
settings.register_profile(
    "steady", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "soak",
    max_examples=1000,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test-fast` leaves out: tests of the fixture `control_plane`, and all of tests/spark."""
    for item in items:
        if "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real)
        if SPARK in item.path.parents:
            item.add_marker(pytest.mark.spark)
