"""One life of the agent's core: facts, World and Reconciler, wired as the agent wires them, without its senses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random

from agent.act.reconciler import Api, Reconciler
from agent.decide.desired import fold, initial
from agent.decide.status import state
from agent.model import Fact, Observed, State
from agent.settings import Settings
from tests.support.make import bound
from tests.support.wire import Wire


class Life:
    """From start to crash. `told` are the Observed in their order."""

    def __init__(self, api: Api, settings: Settings, *, seed: int = 0, former: bool = False) -> None:
        self.settings = settings
        self.world = initial()
        self.told: list[Observed] = []
        # Whether the Service was ever seen to be as wanted: before that it may lead where a former life led it.
        self.knows = False
        self.watch: Callable[[], None] = lambda: None  # called after each fact
        self._news = asyncio.Event()
        self.reconciler = Reconciler(
            api, settings, lambda: self.world.intent, self.tell, Random(seed), former=former
        )

    @property
    def state(self) -> State:
        return state(self.world)

    @property
    def gone(self) -> bool:
        """Whether it is known that nothing routes here."""
        return self.world.intent.gone(self.world.observed)

    @property
    def reached(self) -> bool:
        """Whether it is known that the Service leads to the port to serve, and to no other of ours."""
        return self.world.intent.reached(self.world.observed)

    def tell(self, *facts: Fact) -> None:
        """Takes facts; a new Intent wakes the reconciler before this returns."""
        for fact in facts:
            before = self.world.intent
            self.world = fold(self.world, fact, self.settings)
            if isinstance(fact, Observed):
                self.told.append(fact)
                self.knows = self.knows or self.gone or self.reached
            if self.world.intent != before:
                self.reconciler.wake()
            self.watch()
            self._news.set()

    async def until(self, condition: Callable[[], bool], within: float = 60.0) -> None:
        """Waits for a fact after which `condition` holds.

        Raises:
            TimeoutError: after `within` seconds.
        """
        async with asyncio.timeout(within):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def settled(self, within: float = 60.0) -> None:
        """Waits until what is wanted now has been answered for, good or bad."""
        await self.until(
            lambda: (
                self.world.observed is not None
                and self.world.observed.generation >= self.world.intent.generation
            ),
            within,
        )

    async def published(self, within: float = 60.0) -> None:
        await self.until(lambda: self.state is State.PUBLISHED, within)

    async def withdrawn(self, within: float = 60.0) -> None:
        await self.until(lambda: self.gone, within)


def _settings_of(api: Api) -> Settings:
    assert isinstance(api, Wire)
    return api.settings


@asynccontextmanager
async def alive(
    api: Api, settings: Settings | None = None, *, seed: int = 0, former: bool = False
) -> AsyncIterator[Life]:
    """A life that ends, as by a crash, with the block; a defect in the reconciler is raised here."""
    life = Life(api, settings or _settings_of(api), seed=seed, former=former)
    task = asyncio.ensure_future(life.reconciler.run())
    try:
        yield life
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def serving(wire: Wire) -> AsyncIterator[Life]:
    """A life whose UI, that of JVM 7 at port 39001, is published; its endpoints may take a moment more."""
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.published()
        yield life
