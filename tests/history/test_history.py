"""Random orders of everything that can happen: the promises hold throughout, and in the end all is right and quiet.

More of them: `pytest tests/history --history-runs 5000`; one again: `--history-seed S --history-runs 1`.
"""

from __future__ import annotations

from tests.history.clock import run
from tests.history.history import History

STEPS = 40


def test_a_random_history(history_seed: int) -> None:
    run(History(history_seed).play(STEPS), seed=history_seed)
