"""Asks the candidates, one at a time, best first and seldom, until the UI is proven."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from .. import times
from ..decide.identify import candidates, judge, usual
from ..model import Answered, Fact, HookState, Question, Taken, World
from ..settings import Settings
from .probe import ask


@dataclass(slots=True)
class _Record:
    """What the search remembers of one socket. Times are of the loop's clock."""

    seen: float
    due: float
    asked: float | None = None  # first
    tries: int = 0
    starting: bool = False


class Search:
    """Tells `Answered` for what was asked; a final verdict ends the questions to that socket.

    `ours` gives the inodes of the agent's own listeners. `count` is called with the verdict of each question that
    was asked to its end (a `Taken`, as text). `wake` is to be called whenever the World has changed.
    """

    def __init__(
        self,
        tell: Callable[[Fact], None],
        view: Callable[[], World],
        settings: Settings,
        ours: Callable[[], frozenset[int]] = frozenset,
        count: Callable[[str], None] = lambda _verdict: None,
    ) -> None:
        self._tell = tell
        self._view = view
        self._settings = settings
        self._ours = ours
        self._count = count
        self._records: dict[int, _Record] = {}
        self._wake = asyncio.Event()
        self._asked = 0
        self._question: asyncio.Timeout | None = None

    def wake(self) -> None:
        """The World has changed: look again. A question to a socket that is gone is given up."""
        self._wake.set()
        if self._question is not None and self._asked not in self._view().listeners:
            self._question.reschedule(asyncio.get_running_loop().time())
            self._question = None

    async def run(self) -> None:
        """Asks until cancelled; waits without work while there is nobody to ask."""
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            question, due = self._next(loop.time())
            if question is not None:
                await self._ask(question)
                continue
            try:
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _next(self, now: float) -> tuple[Question | None, float | None]:
        """The question to ask now, or none and when the next one is due (None: not before the World changes)."""
        world = self._view()
        self._records = {
            inode: self._records.get(inode) or _Record(seen=now, due=now) for inode in world.listeners
        }
        earliest: float | None = None
        held_back = False
        for question in candidates(world, self._settings, self._ours()):
            record = self._records.get(question.listener.inode)
            if record is None or self._older_than_proven(question, record, world):
                continue
            likely = usual(question.listener.port)
            if held_back and not likely:
                continue  # a likely one is starting: leave the others alone
            due = record.due
            if record.asked is None and self._hook_may_tell(question, world):
                due = record.seen + times.HOOK_HEAD_START
            if due <= now:
                return question, None
            earliest = due if earliest is None else min(earliest, due)
            held_back = held_back or (likely and record.starting)
        return None, earliest

    @staticmethod
    def _hook_may_tell(question: Question, world: World) -> bool:
        """True while the bind line of a new listener may be on its way."""
        told = {ui.listener.inode for ui in world.proven}
        return world.hook is HookState.WAITING or (
            world.hook is HookState.CONNECTED and question.listener.inode not in told
        )

    def _older_than_proven(self, question: Question, record: _Record, world: World) -> bool:
        """True where the answer could change nothing: the newest UI is wanted and a newer one is proven.

        On a shared network it could: the same application twice has to be noticed.
        """
        if self._settings.contexts != "newest" or self._settings.identity.host_network:
            return False
        asked = question.listener.inode
        scheme = self._settings.scheme
        proven = [ui.listener.inode for ui in world.proven if scheme in ("auto", ui.scheme)]
        seen = [self._records[inode].seen for inode in proven if inode in self._records]
        return asked not in proven and bool(seen) and record.seen <= max(seen)

    async def _ask(self, question: Question) -> None:
        loop = asyncio.get_running_loop()
        inode = question.listener.inode
        self._asked = inode
        try:
            async with asyncio.timeout(None) as self._question:
                answer = await ask(question, loop.time() + times.PROBE_FIRST)
        except TimeoutError:
            return
        finally:
            self._question = None
        verdict = judge(answer, question, self._settings.identity.application)
        self._count(verdict.taken.value)
        if inode not in self._view().listeners:
            return
        self._plan(inode, verdict.taken, loop.time())
        self._tell(Answered(question.listener, question.scheme, verdict))

    def _plan(self, inode: int, taken: Taken, now: float) -> None:
        """When this socket may be asked again, if at all."""
        record = self._records[inode]
        record.tries += 1
        record.asked = now if record.asked is None else record.asked
        record.starting = taken is Taken.STARTING and now - record.asked < times.PROBE_STARTING
        doublings = min(record.tries - 1, 16)
        grown = min(times.PROBE_AGAIN_MIN * 2.0**doublings, times.PROBE_AGAIN_MAX)
        match taken:
            case Taken.STARTING:
                pace = grown if record.starting else times.PROBE_SLOW
            case Taken.SPEAKS_TLS:
                record.tries, pace = 0, 0.0
            case Taken.SILENT | Taken.FILTERED:
                pace = times.PROBE_AGAIN_MAX if record.tries < times.PROBE_TRIES else times.PROBE_SLOW
            case _:
                pace = grown if record.tries < times.PROBE_TRIES else times.PROBE_SLOW
        record.due = now + pace
