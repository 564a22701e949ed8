"""Options of the random histories: how many, and from which seed on."""

from __future__ import annotations

import pytest

RUNS = 60


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("history")
    group.addoption(
        "--history-runs",
        type=int,
        default=RUNS,
        metavar="N",
        help=f"random histories to run (default {RUNS})",
    )
    group.addoption(
        "--history-seed", type=int, default=0, metavar="S", help="seed of the first one (default 0)"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `history_seed` runs once for each seed; its id is the seed."""
    if "history_seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("--history-seed")
        runs = metafunc.config.getoption("--history-runs")
        assert isinstance(first, int)
        assert isinstance(runs, int)
        seeds = range(first, first + runs)
        metafunc.parametrize("history_seed", seeds, ids=[f"seed-{seed}" for seed in seeds])
