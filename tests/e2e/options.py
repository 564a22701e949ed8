"""Options of the lives on the real node: how many pairs of drivers share its network, one pair after the other."""

from __future__ import annotations

import pytest

PAIRS = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("e2e").addoption(
        "--pairs",
        type=int,
        default=PAIRS,
        metavar="N",
        help=f"pairs of drivers under hostNetwork (default {PAIRS})",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `pair` runs once for each pair; its id is the pair's number."""
    if "pair" in metafunc.fixturenames:
        pairs = metafunc.config.getoption("--pairs")
        assert isinstance(pairs, int)
        numbers = [str(number) for number in range(1, pairs + 1)]
        metafunc.parametrize("pair", numbers, indirect=True, scope="session")
