"""Wiring: facts go to `fold`, what follows goes to the reconciler and the rest, and everything is told.

All tasks live in one TaskGroup. Signals and requests only tell facts; nothing here looks into one.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from . import __version__, times
from .act.guard import Guard
from .act.kube import Kube
from .act.proofs import recall, remember
from .act.reconciler import Reconciler
from .act.volume import Installed, had_a_ui
from .decide.desired import fold, guarded, initial, withdrawn
from .decide.lifecycle import finished, over, patience
from .decide.status import status
from .model import (
    Draining,
    Fact,
    HookReady,
    Misconfigured,
    Status,
    Trouble,
    World,
)
from .sense.driver import DriverWatch
from .sense.loghook import LogHook
from .sense.search import Search
from .sense.signals import Signals
from .sense.sockets import SocketTable, SocketWatch
from .settings import Settings, SettingsError
from .tell.announcer import Announcer
from .tell.control import Control, RequestError
from .tell.discovery import listing
from .tell.events import Events
from .tell.logs import Log, hide
from .tell.metrics import Metrics
from .tell.report import document
from .tell.web import Web

REPORT = "please report this; the driver is not affected"
Part = Callable[[], Awaitable[None]]
Follower = Callable[[World, World], None]


async def run(settings: Settings | SettingsError, log: Log, installed: Installed, signals: Signals) -> bool:
    """Runs until the driver has ended or a signal came, and the Service leads nowhere. Raises only defects.

    `installed` is what stands of the hook in the shared volume. True when it was a defect alone that ended it, so that
    the driver is still to be served; a signal is kept in `signals` once this has returned or raised.
    """
    problem = settings if isinstance(settings, SettingsError) else None
    usable = settings.settings if isinstance(settings, SettingsError) else settings
    metrics = Metrics()

    def count(verb: str, code: str) -> None:
        metrics.count("api_requests_total", verb=verb, code=f"{code[0]}xx" if code.isdigit() else "none")

    try:
        async with Kube.open(usable, count, hide) as kube:
            app = App(usable, log, kube, metrics, installed, problem=problem)
            loop = asyncio.get_running_loop()
            signals.deliver = lambda name: loop.call_soon_threadsafe(app.dismiss, name)
            return await app.run()
    finally:
        signals.keep()


class App:
    """The agent: one World, and the parts that learn, act and tell.

    With a `problem` in the settings nothing is searched and nothing is written: they may name the wrong Service.
    """

    def __init__(
        self,
        settings: Settings,
        log: Log,
        kube: Kube,
        metrics: Metrics,
        installed: Installed,
        *,
        problem: SettingsError | None = None,
    ) -> None:
        self._settings = settings
        self._logger = log
        self._problem = problem
        self._world = initial()
        self._pulse = asyncio.Event()
        self._ticked = asyncio.get_running_loop().time()
        metrics.gauge("info", 1, version=__version__)

        table = SocketTable()
        web = Web(
            settings,
            status=self.status,
            since=lambda: self._announcer.since,
            alive=self._alive,
            metrics=metrics.text,
            log=log,
        )
        hook = self._hook(installed, table, metrics)
        self._guard = guard = Guard(settings.settle)

        def ours() -> frozenset[int]:
            return web.inodes | guard.inodes | (hook.inodes if hook is not None else frozenset())

        self._ours = ours
        sockets = SocketWatch(table, self.tell, self.view)
        search = Search(
            self.tell,
            self.view,
            settings,
            ours,
            count=lambda verdict: metrics.count("probes_total", verdict=verdict),
        )
        former = had_a_ui(settings.dir)
        driver = DriverWatch(
            lambda: kube.get_pod(settings.identity.pod), self.tell, self.view, settings, ours, seen=former
        )
        self._begun: float | None = None  # loop time of the first word of our end
        self._defect = False  # has ended it
        self._dismissed = False  # by a signal or `drain`
        reconciler = Reconciler(kube, settings, lambda: self._world.intent, self.tell, former=former)
        self._published = reconciler.touched
        self._events = Events(settings, kube.create_event, log)
        self._announcer = Announcer(log, metrics, [self._events.tell])
        handlers = {
            "status": self._on_status,
            "discover": self._on_discover,
            "settled": self._on_settled,
            "drain": self._on_drain,
        }
        self._control = Control(settings.control_socket, handlers, log)

        self._parts: dict[str, Part] = {
            "tick": self._tick,
            "guard": guard.run,
            "sockets": sockets.run,
            "driver": driver.run,
            "web": web.run,
            "control": self._control.run,
            "events": self._events.run,
        }
        # The guard first: from here to the freed port it is a matter of microseconds.
        self._followers: list[Follower] = [lambda before, after: guard.follow(guarded(after, settings))]
        if problem is None:
            self._parts |= {"reconciler": reconciler.run, "search": search.run}
            self._followers.append(self._remember)
            self._followers.append(
                lambda before, after: reconciler.wake() if after.intent != before.intent else None
            )
        if hook is not None:
            self._parts["hook"] = hook.run
        self._followers += [
            lambda before, after: search.wake(),
            lambda before, after: driver.wake(),
            lambda before, after: self._announcer.tell(self.status()),
        ]

    # --- facts in --------------------------------------------------------------------------------------

    def tell(self, fact: Fact) -> None:
        """Takes a fact; who acts on it knows what follows before this returns."""
        before = self._world
        self._world = fold(before, fact, self._settings)
        if self._world == before:
            return
        for follow in self._followers:
            try:
                follow(before, self._world)
            except Exception as error:
                # whoever comes after it has to know all the same, the reconciler before all
                self._logger.exception("defect", part="tell", remedy=REPORT)
                self._broken("tell", error)
        if self._begun is None and (self._world.ending or self._ending(self._world)):
            self._begun = asyncio.get_running_loop().time()
        self._pulse.set()
        self._pulse = asyncio.Event()

    def view(self) -> World:
        """What is known now."""
        return self._world

    def status(self) -> Status:
        """What the agent is doing, for whoever asks."""
        return status(self._world, self._settings)

    async def until(self, condition: Callable[[World], bool], deadline: float) -> bool:
        """Waits until the World meets `condition`; False when `deadline` (loop time) comes first."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while not condition(self._world):
                    await self._pulse.wait()
        return condition(self._world)

    # --- start, run, end -------------------------------------------------------------------------------

    async def run(self) -> bool:
        """Until the end; see `agent.app.run`."""
        for warning in self._settings.warnings:
            self._logger.warning(warning)
        self._announcer.tell(self.status())
        if self._problem is not None:
            self.tell(Misconfigured(Trouble("settings", str(self._problem), "correct the Pod template")))
        else:
            self.tell(HookReady(on="hook" in self._parts))
            self._recall()
        gc.freeze()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._guarded(name, part), name=name) for name, part in self._parts.items()
            ]
            await self._end()
            with suppress(TimeoutError):
                async with asyncio.timeout(times.FAREWELL):
                    await self._events.sent()
                    await self._control.answered()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.settle + times.FAREWELL):
                    await self._guard.released()
            for task in tasks:
                task.cancel()
        return self._defect and not self._dismissed and self._world.ended is None

    def dismiss(self, why: str) -> None:
        """By a signal of this name: ends once the Service leads nowhere."""
        self._dismissed = True
        self.tell(Draining(why, leave=True))

    async def _end(self) -> None:
        """Returns when nothing is left to do, or no time is left to do it."""
        loop = asyncio.get_running_loop()
        await self.until(self._ending, float("inf"))
        if self._problem is not None:
            return
        deadline = self._patience()
        if await self.until(self._over, deadline):
            # Only an ended driver's Service is released; kubelet may tell of the end a moment after its SIGTERM.
            if not await self.until(self._finished, loop.time() + times.END_LOOK):
                self._logger.info(
                    "left parked",
                    service=self.status().service,
                    found="the driver's end was not seen in time to release it",
                    remedy="none needed: what the agent created is deleted with the Pod",
                )
            return
        observed = self._world.observed
        blocked = observed.blocked if observed is not None else None
        self._logger.error(
            "left undone",
            service=self.status().service,
            wanted=type(self._world.intent.desired).__name__.lower(),
            found=blocked.found if blocked is not None else "the API server has not answered yet",
            remedy="none needed: the Service's endpoints go with the Pod",
        )

    def _patience(self) -> float:
        """Loop time until which our end waits for the endpoints to go."""
        now = asyncio.get_running_loop().time()
        return patience(now, now if self._begun is None else self._begun, published=self._published())

    def _ending(self, world: World) -> bool:
        if self._problem is not None:  # nothing was written, so nothing has to be taken back
            return world.leaving or world.ended is not None
        return world.leaving or (self._settings.mode == "plain" and world.ended is not None)

    def _over(self, world: World) -> bool:
        return over(world, self._settings)

    def _finished(self, world: World) -> bool:
        return finished(world, self._settings, self._ours())

    async def _guarded(self, name: str, part: Part) -> None:
        """One part. A defect in it parks the Service and ends the run in order, so that a new one can begin.

        What parks is tried again, since it keeps nothing between two passes that it could not read anew.
        """
        for left in reversed(range(times.DEFECTS if name == "reconciler" else 1)):
            try:
                await part()
            except Exception as error:
                self._logger.exception("defect", part=name, remedy=REPORT)
                self._broken(name, error)
                if left:
                    await asyncio.sleep(times.RETRY_MIN)

    def _broken(self, name: str, error: Exception) -> None:
        self._defect = True
        if not self._world.leaving:
            why = Draining(f"a defect in {name}: {error!r}", leave=True)
            asyncio.get_running_loop().call_soon(self.tell, why)

    # --- the log hook ------------------------------------------------------------------------------------

    def _hook(self, installed: Installed, table: SocketTable, metrics: Metrics) -> LogHook | None:
        """The receiver, where a hook is wanted and its files could be written."""
        for line in installed.said:
            self._logger.info(line)
        if not installed.hook:
            return None
        hide(installed.secret)
        return LogHook(
            installed.port,
            installed.secret,
            self._settings.hook_timeout,
            self.tell,
            scan=table.scan,
            withdrawn=lambda pid, deadline: self.until(lambda world: withdrawn(world, pid), deadline),
            count=lambda outcome: metrics.count("hook_posts_total", outcome=outcome),
            warn=self._logger.warning,
            driver_uid=self._settings.driver_uid,
        )

    def _remember(self, before: World, after: World) -> None:
        if after.proven != before.proven:
            remember(self._settings.dir, after.proven)

    def _recall(self) -> None:
        """What a former life had proven holds as long as that very socket listens: a restart parks nothing."""
        if not had_a_ui(self._settings.dir):
            return
        table = SocketTable()
        scanned = table.scan()
        table.close()
        for fact in (scanned, *recall(self._settings.dir, scanned.listeners)):
            self.tell(fact)

    async def _tick(self) -> None:
        while True:
            self._ticked = asyncio.get_running_loop().time()
            await asyncio.sleep(times.TICK)

    def _alive(self) -> bool:
        return asyncio.get_running_loop().time() - self._ticked < times.LIVENESS

    # --- requests over the Unix socket -------------------------------------------------------------------

    async def _on_status(self, _request: Mapping[str, object]) -> Mapping[str, object]:
        return document(self.status(), self._announcer.since)

    async def _on_discover(self, _request: Mapping[str, object]) -> Mapping[str, object]:
        return listing(self._world, self._settings, self._ours())

    async def _on_settled(self, _request: Mapping[str, object]) -> Mapping[str, object]:
        """Whether the Service has been made what this life of the agent wants it to be; waits for that a while."""
        deadline = asyncio.get_running_loop().time() + times.SETTLED
        return {"settled": self._problem is not None or await self.until(_settled, deadline)}

    async def _on_drain(self, request: Mapping[str, object]) -> Mapping[str, object]:
        timeout = request.get("timeout", times.DRAIN_DEFAULT)
        if not isinstance(timeout, int | float):
            raise RequestError("timeout is a number of seconds")
        self._dismissed = True
        self.tell(Draining("drain"))
        deadline = asyncio.get_running_loop().time() + timeout
        if not self._published():
            deadline = min(deadline, self._patience())
        # With wrong settings nothing was written, so nothing leads here by us.
        gone = self._problem is not None or await self.until(_gone, deadline)
        return {"gone": gone, **document(self.status(), self._announcer.since)}


def _settled(world: World) -> bool:
    intent, observed = world.intent, world.observed
    if observed is None or observed.generation < intent.generation:
        return False
    # what is refused is not ours to see to; an API server that is away may come back in time
    refused = observed.blocked is not None and observed.blocked.code != "api"
    return refused or intent.gone(observed) or intent.reached(observed)


def _gone(world: World) -> bool:
    return world.intent.gone(world.observed)
