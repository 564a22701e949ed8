"""SIGTERM and SIGINT, for all of the process's life."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

NUMBERS = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """Hands a signal to whoever is in charge.

    asyncio's own handlers end with their loop. As process 1 of a container one that comes before, between or after two
    loops would then be lost, and any other process would be ended by it with a failure.
    """

    def __init__(self, deliver: Callable[[str], object]) -> None:
        """From now on; `deliver` takes the name of each, in the main thread between two instructions."""
        self.deliver = deliver
        self.came = ""  # the first one
        for number in NUMBERS:
            signal.signal(number, self._take)

    def keep(self) -> None:
        """The next one is kept in `came` and nothing else comes of it."""
        self.deliver = lambda _name: None

    @staticmethod
    def ignore() -> None:
        """No other one counts: the process is about to end by itself."""
        for number in NUMBERS:
            signal.signal(number, signal.SIG_IGN)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        self.came = self.came or name
        self.deliver(name)
