"""An event loop whose time jumps: when nothing is ready, it is at once as late as the next timer.

For code without sockets. What takes hours of waiting takes milliseconds, in the same order each time.
"""

from __future__ import annotations

import asyncio
import functools
import random
import selectors
from collections.abc import Callable, Coroutine
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LONGEST = 10 * 86400.0  # no test means to wait for longer: one that does would never end


class StuckError(Exception):
    """Nothing is ready, and no timer will make it so; or the time that a test may take is over."""


class _Selector(selectors.SelectSelector):
    """Never waits: the time for which it should have is added to the clock instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise StuckError("nothing is ready and nothing is due")
        self.now += max(timeout, 0.0)
        if self.now > LONGEST:
            raise StuckError(f"still not done after {LONGEST:g} s of its time")
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` begins at 0 and moves only while everything waits."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run(main: Coroutine[object, object, T], *, seed: int = 0) -> T:
    """Runs `main` to its end on a VirtualLoop, with `random` seeded.

    Raises:
        StuckError: where it waits for what will never come.
    """
    random.seed(seed)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def virtual(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    """Makes an async test run on a VirtualLoop, outside of pytest's own loop."""

    @functools.wraps(test)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return wrapped
