"""When the agent ends, what it waits for before, and whether a new life of it has to follow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .. import times
from ..decide.lifecycle import finished, leaving, over, patience
from ..decide.status import status
from ..model import Draining, World
from ..settings import Settings
from ..tell.logs import Log
from .knowledge import Knowledge


class Ending:
    """The end of one life of the agent.

    Where `settings_hold` not, nothing was written, so nothing has to be taken back. `touched` says whether the Service may
    lead here; `ours` are the inodes of the agent's own listeners.
    """

    def __init__(
        self,
        settings: Settings,
        knowledge: Knowledge,
        log: Log,
        *,
        settings_hold: bool,
        touched: Callable[[], bool],
        ours: Callable[[], frozenset[int]],
    ) -> None:
        self._settings = settings
        self._knowledge = knowledge
        self._logger = log
        self._settings_hold = settings_hold
        self._touched = touched
        self._ours = ours
        self._begun: float | None = None  # loop time of the first word of our end
        self._defect = False  # has ended it
        self._dismissed = False  # by a signal or `drain`

    def dismiss(self, why: str, *, leave: bool) -> None:
        """Someone ends it, and no new life follows. Not to `leave` is to wait for SIGTERM, with the Service parked."""
        self._dismissed = True
        self._knowledge.tell(Draining(why, leave=leave))

    def broken(self, part: str, error: Exception) -> None:
        """A defect: parks the Service and ends the run in order, so that a new one can begin."""
        self._defect = True
        if not self._knowledge.view().leaving:
            why = Draining(f"a defect in {part}: {error!r}", leave=True)
            asyncio.get_running_loop().call_soon(self._knowledge.tell, why)

    def again(self) -> bool:
        """True when it was a defect alone that ended it, so that the driver is still to be served."""
        return self._defect and not self._dismissed and self._knowledge.view().ended is None

    def follow(self, _before: World, after: World) -> None:
        """Notes when the end begins: all that it waits for shares one deadline."""
        if self._begun is None and (after.ending or self._leaving(after)):
            self._begun = asyncio.get_running_loop().time()

    async def come(self) -> None:
        """Returns when nothing is left to do, or no time is left to do it."""
        loop, until = asyncio.get_running_loop(), self._knowledge.until
        await until(self._leaving, float("inf"))
        if not self._settings_hold:
            return
        if await until(lambda world: over(world, self._settings), self.patience()):
            # Only an ended driver's Service is released; kubelet may tell of the end a moment after its SIGTERM.
            if not await until(self._finished, loop.time() + times.END_LOOK):
                self._logger.info(
                    "left parked",
                    service=self._service(),
                    found="the driver's end was not seen in time to release it",
                    remedy="none needed: what the agent created is deleted with the Pod",
                )
            return
        world = self._knowledge.view()
        blocked = world.observed.blocked if world.observed is not None else None
        self._logger.error(
            "left undone",
            service=self._service(),
            wanted=type(world.intent.desired).__name__.lower(),
            found=blocked.found if blocked is not None else "the API server has not answered yet",
            remedy="none needed: the Service's endpoints go with the Pod",
        )

    def patience(self) -> float:
        """Loop time until which our end waits for the endpoints to go."""
        now = asyncio.get_running_loop().time()
        return patience(now, now if self._begun is None else self._begun, published=self._touched())

    def _leaving(self, world: World) -> bool:
        if not self._settings_hold:
            return world.leaving or world.ended is not None
        return leaving(world, self._settings)

    def _finished(self, world: World) -> bool:
        return finished(world, self._settings, self._ours())

    def _service(self) -> str:
        return status(self._knowledge.view(), self._settings).service
