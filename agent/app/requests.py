"""What is answered over the Unix socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from .. import times
from ..decide.lifecycle import settled
from ..decide.status import status
from ..model import World
from ..settings import Settings
from ..tell.control import Handler, RequestError
from ..tell.discovery import listing
from ..tell.report import document
from .ending import Ending
from .knowledge import Knowledge


class Requests:
    """Handlers of `status`, `discover`, `settled` and `drain`; see `agent.tell.control`.

    Where `settings_hold` not, nothing was written: nothing leads here by us, and no waiting changes that.
    """

    def __init__(
        self,
        settings: Settings,
        knowledge: Knowledge,
        ending: Ending,
        *,
        settings_hold: bool,
        touched: Callable[[], bool],
        ours: Callable[[], frozenset[int]],
        since: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._knowledge = knowledge
        self._ending = ending
        self._settings_hold = settings_hold
        self._touched = touched
        self._ours = ours
        self._since = since

    def handlers(self) -> Mapping[str, Handler]:
        """By the command's name."""
        return {
            "status": self._status,
            "discover": self._discover,
            "settled": self._settled,
            "drain": self._drain,
        }

    async def _status(self, _request: Mapping[str, object]) -> Mapping[str, object]:
        return self._document()

    async def _discover(self, _request: Mapping[str, object]) -> Mapping[str, object]:
        return listing(self._knowledge.view(), self._settings, self._ours())

    async def _settled(self, _request: Mapping[str, object]) -> Mapping[str, object]:
        """Whether the Service has been made what this life of the agent wants it to be; waits for that a while."""
        return {"settled": await self._until(settled, asyncio.get_running_loop().time() + times.SETTLED)}

    async def _drain(self, request: Mapping[str, object]) -> Mapping[str, object]:
        timeout = request.get("timeout", times.DRAIN_DEFAULT)
        if not isinstance(timeout, int | float):
            raise RequestError("timeout is a number of seconds")
        self._ending.dismiss("drain", leave=False)
        deadline = asyncio.get_running_loop().time() + timeout
        if not self._touched():
            deadline = min(deadline, self._ending.patience())
        return {"gone": await self._until(_gone, deadline), **self._document()}

    async def _until(self, condition: Callable[[World], bool], deadline: float) -> bool:
        return not self._settings_hold or await self._knowledge.until(condition, deadline)

    def _document(self) -> Mapping[str, object]:
        return document(status(self._knowledge.view(), self._settings), self._since())


def _gone(world: World) -> bool:
    return world.intent.gone(world.observed)
