"""The parts of the agent, what each of them is handed, and the one TaskGroup in which they run."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import suppress

from .. import __version__, times
from ..act.guard import Guard
from ..act.kube import Kube
from ..act.proofs import recall, remember
from ..act.reconciler import Reconciler
from ..act.volume import Installed, had_a_ui
from ..decide.desired import guarded, withdrawn
from ..decide.status import status
from ..model import HookReady, Misconfigured, Status, Trouble, World
from ..sense.driver import DriverWatch
from ..sense.loghook import LogHook
from ..sense.search import Search
from ..sense.signals import Signals
from ..sense.sockets import SocketTable, SocketWatch
from ..settings import Settings, SettingsError
from ..tell.announcer import Announcer
from ..tell.control import Control
from ..tell.events import Events
from ..tell.logs import REPORT, Log, hide
from ..tell.metrics import Metrics
from ..tell.web import Web
from .ending import Ending
from .knowledge import Knowledge
from .requests import Requests

Part = Callable[[], Awaitable[None]]


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
        self._ticked = asyncio.get_running_loop().time()
        self._knowledge = knowledge = Knowledge(
            settings, log, failed=lambda error: self._ending.broken("tell", error)
        )
        tell, view = knowledge.tell, knowledge.view
        metrics.gauge("info", 1, version=__version__)

        self._events = Events(settings, kube.create_event, log)
        self._announcer = announcer = Announcer(log, metrics, [self._events.tell])
        table = SocketTable()
        web = Web(
            settings,
            status=self.status,
            since=lambda: announcer.since,
            alive=self._alive,
            metrics=metrics.text,
            log=log,
        )
        hook = self._hook(installed, table, metrics)
        self._guard = guard = Guard(settings.settle)

        def ours() -> frozenset[int]:
            return web.inodes | guard.inodes | (hook.inodes if hook is not None else frozenset())

        sockets = SocketWatch(table, tell, view)
        search = Search(
            tell,
            view,
            settings,
            ours,
            count=lambda verdict: metrics.count("probes_total", verdict=verdict),
        )
        former = had_a_ui(settings.dir)
        driver = DriverWatch(
            lambda: kube.get_pod(settings.identity.pod), tell, view, settings, ours, seen=former
        )
        reconciler = Reconciler(kube, settings, lambda: view().intent, tell, former=former)
        self._ending = Ending(
            settings,
            knowledge,
            log,
            settings_hold=problem is None,
            touched=reconciler.touched,
            ours=ours,
        )
        requests = Requests(
            settings,
            knowledge,
            self._ending,
            settings_hold=problem is None,
            touched=reconciler.touched,
            ours=ours,
            since=lambda: announcer.since,
        )
        self._control = Control(settings.control_socket, requests.handlers(), log)

        self._parts: dict[str, Part] = {
            "tick": self._tick,
            "guard": guard.run,
            "sockets": sockets.run,
            "driver": driver.run,
            "web": web.run,
            "control": self._control.run,
            "events": self._events.run,
        }
        if problem is None:
            self._parts |= {"reconciler": reconciler.run, "search": search.run}
        if hook is not None:
            self._parts["hook"] = hook.run

        # The guard first: from here to the freed port it is a matter of microseconds.
        knowledge.followers.append(lambda before, after: guard.follow(guarded(after, settings)))
        if problem is None:
            knowledge.followers += [
                self._remember,
                lambda before, after: reconciler.wake() if after.intent != before.intent else None,
            ]
        knowledge.followers += [
            lambda before, after: search.wake(),
            lambda before, after: driver.wake(),
            lambda before, after: announcer.tell(self.status()),
            self._ending.follow,
        ]

    def status(self) -> Status:
        """What the agent is doing, for whoever asks."""
        return status(self._knowledge.view(), self._settings)

    def dismiss(self, why: str) -> None:
        """By a signal of this name: ends once the Service leads nowhere."""
        self._ending.dismiss(why, leave=True)

    async def run(self) -> bool:
        """Until the end; see `agent.app.run`."""
        for warning in self._settings.warnings:
            self._logger.warning(warning)
        self._announcer.tell(self.status())
        tell = self._knowledge.tell
        if self._problem is not None:
            tell(Misconfigured(Trouble("settings", str(self._problem), "correct the Pod template")))
        else:
            tell(HookReady(on="hook" in self._parts))
            self._recall()
        gc.freeze()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._guarded(name, part), name=name) for name, part in self._parts.items()
            ]
            await self._ending.come()
            with suppress(TimeoutError):
                async with asyncio.timeout(times.FAREWELL):
                    await self._events.sent()
                    await self._control.answered()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.settle + times.FAREWELL):
                    await self._guard.released()
            for task in tasks:
                task.cancel()
        return self._ending.again()

    async def _guarded(self, name: str, part: Part) -> None:
        """One part. A defect in it parks the Service and ends the run in order, so that a new one can begin.

        What parks is tried again, since it keeps nothing between two passes that it could not read anew.
        """
        for left in reversed(range(times.DEFECTS if name == "reconciler" else 1)):
            try:
                await part()
            except Exception as error:
                self._logger.exception("defect", part=name, remedy=REPORT)
                self._ending.broken(name, error)
                if left:
                    await asyncio.sleep(times.RETRY_MIN)

    async def _tick(self) -> None:
        while True:
            self._ticked = asyncio.get_running_loop().time()
            await asyncio.sleep(times.TICK)

    def _alive(self) -> bool:
        return asyncio.get_running_loop().time() - self._ticked < times.LIVENESS

    def _hook(self, installed: Installed, table: SocketTable, metrics: Metrics) -> LogHook | None:
        """The receiver, where a hook is wanted and its files could be written."""
        for line in installed.said:
            self._logger.info(line)
        if not installed.hook:
            return None
        hide(installed.secret)
        until = self._knowledge.until
        return LogHook(
            installed.port,
            installed.secret,
            self._settings.hook_timeout,
            self._knowledge.tell,
            scan=table.scan,
            withdrawn=lambda pid, deadline: until(lambda world: withdrawn(world, pid), deadline),
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
            self._knowledge.tell(fact)
