"""The one World: facts are folded into it, and who acts on them follows in the same callback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from ..decide.desired import fold, initial
from ..model import Fact, World
from ..settings import Settings
from ..tell.logs import REPORT, Log

# takes the World before a fact, and after it
Follower = Callable[[World, World], None]


class Knowledge:
    """What is known. `failed` is told of a follower's defect."""

    def __init__(self, settings: Settings, log: Log, failed: Callable[[Exception], None]) -> None:
        self.followers: list[Follower] = []
        self._settings = settings
        self._logger = log
        self._failed = failed
        self._world = initial()
        self._pulse = asyncio.Event()

    def tell(self, fact: Fact) -> None:
        """Takes a fact; who acts on it knows what follows before this returns."""
        before = self._world
        self._world = fold(before, fact, self._settings)
        if self._world == before:
            return
        for follow in self.followers:
            try:
                follow(before, self._world)
            except Exception as error:
                # whoever comes after it has to know all the same, the reconciler before all
                self._logger.exception("defect", part="tell", remedy=REPORT)
                self._failed(error)
        self._pulse.set()
        self._pulse = asyncio.Event()

    def view(self) -> World:
        """What is known now."""
        return self._world

    async def until(self, condition: Callable[[World], bool], deadline: float) -> bool:
        """Waits until the World meets `condition`; False when `deadline` (loop time) comes first."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while not condition(self._world):
                    await self._pulse.wait()
        return condition(self._world)
