"""One random history: a driver and its neighbours, an agent that crashes, an API server that fails, other writers.

The node, the API server's store and the agent's core are real as far as they go without sockets; time is virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from random import Random

from agent import times
from agent.decide.desired import guarded, withdrawn
from agent.model import (
    Answered,
    Closed,
    Fact,
    HookBound,
    HookStopping,
    Listener,
    Scanned,
    Scheme,
    Serve,
    State,
    Taken,
    Verdict,
)
from tests.history.node import PORTS, Node
from tests.history.promises import MARKS, Promises
from tests.history.weather import Weather
from tests.support.cluster import Cluster
from tests.support.life import Life, alive
from tests.support.make import APP, NODE_IP, OTHER_APP, POD_IP, service, settings
from tests.support.wire import Wire

HOOK_TIMEOUT = 2.0  # the hook's answer comes by then, whatever happens
HEALED = 2 * times.DRIFT  # when all faults are over, the state is right after so long
PAUSES = (0.0, 0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 30.0)


class History:
    """`play` does it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.shared = self.chance.random() < 0.5
        self.hooked = self.chance.random() < 0.5
        self.node = Node(self.chance)
        self.cluster = Cluster(seed=seed, ip=NODE_IP if self.shared else POD_IP)
        self.rival = self.cluster.add_pod("drv-2", {"spark-app-selector": OTHER_APP}, ip="10.1.0.6")
        self.rivals_own = False
        self.kind = self.chance.choice(
            ("none", "none", "mine", "matching", "foreign", "held", "orphan", "served", "left")
        )
        self.adopt = self.chance.choice(("own", "any"))
        given = settings(
            uid=self.cluster.uid, host_network=self.shared, PORT_NAME="http-ui", ADOPT=self.adopt
        )
        self.wire = Wire(self.cluster, given)
        self.promises = Promises(self.cluster, self.node, lambda: self.life, lambda: self.rivals_own)
        self.weather = Weather(self.chance, self.wire, self.promises)
        self.wire.admit = self.promises.arrives
        self.pid = 7  # of the JVM whose UI is up, as its hook tells it
        self.former = False  # an agent has run in this Pod before
        self.life: Life | None = None
        self._lives = AsyncExitStack()
        self._jobs: set[asyncio.Task[None]] = set()

    # --- the course of it ------------------------------------------------------------------------------

    async def play(self, steps: int) -> None:
        """So many random events, then peace, and what must then be true.

        Raises:
            BrokenError: a promise does not hold.
        """
        try:
            self._begin()
            await self.agent_starts()
            for _ in range(steps):
                await asyncio.sleep(self.chance.choice(PAUSES))
                await self._event()
                self._check()
            await self._peace()
        finally:
            for job in self._jobs:
                job.cancel()
            await self._lives.aclose()
            await self.wire.close()

    def _begin(self) -> None:
        self.promises.say(
            f"shared network: {self.shared}, hook: {self.hooked}, service: {self.kind}, adopt: {self.adopt}"
        )
        held, matching = {f"{MARKS}holder": f"drv-2/{self.rival}"}, {"uid-tag": "drv-1"}
        other, theirs = {"spark-app-selector": OTHER_APP}, {f"{MARKS}application": OTHER_APP}
        match self.kind:
            case "mine":
                self.cluster.add_service(service(selector={}, annotations={f"{MARKS}application": APP}))
            case "matching":
                self.promises.tainted = True
                self.cluster.add_service(service(selector=matching))
            case "foreign":
                self.cluster.add_service(service(selector=other))
            case "served":
                self.cluster.add_service(service(selector=other, annotations={**held, **theirs}))
            case "left":  # by an unclean end
                dead = {f"{MARKS}holder": "drv-0/u0", **theirs}
                self.cluster.add_service(service(selector=other, annotations=dead))
            case "held":
                self.cluster.add_service(service(selector={}, annotations=held))
            case "orphan":
                self.promises.tainted = True
                self.cluster.add_service(
                    service(selector=matching, annotations={f"{MARKS}holder": "drv-0/u0"})
                )
        self.rivals_own = self.kind in ("foreign", "held", "served")
        self.cluster.store.ledger.subscribe(self.promises.check)

    async def _event(self) -> None:
        neighbours = 2 if self.shared else 0
        events = (
            (5, self.ui_starts),
            (3, self.ui_stops),
            (3, self.ui_moves),
            (2, self.ui_crashes),
            (neighbours, self.neighbour_starts),
            (neighbours, self.neighbour_stops),
            (2, self.agent_crashes),
            (4, self.agent_starts),
            (4, self.weather.worsens),
            (2, self.weather.clears),
            (4, self.weather.other_writer),
            (1, self.rival_ends),
        )
        weights = [weight for weight, _ in events]
        await self.chance.choices([event for _, event in events], weights)[0]()

    def _check(self) -> None:
        if self.promises.broken is not None:
            raise self.promises.broken
        self.promises.check()

    async def _peace(self) -> None:
        self.promises.say("peace")
        await self.weather.clears()
        await self.agent_starts()
        assert self.life is not None
        await asyncio.sleep(HEALED)
        self._check()
        require, life = self.promises.require, self.life
        wanted, leads = life.world.intent.desired, self.cluster.ports() & set(PORTS)
        require(isinstance(wanted, Serve) == bool(self.node.uis), f"UIs {self.node.uis}, wanted {wanted}")
        if isinstance(wanted, Serve) and self._may_be_had(life):
            require(life.state is State.PUBLISHED, f"in the end {life.state}, {life.world.observed}")
            require(leads == {wanted.port}, f"in the end it leads to {leads}, wanted {wanted}")
        else:
            require(life.state is not State.PUBLISHED, "in the end published")
            require(not leads or self.promises.tainted, f"in the end it leads to {leads}")
            require(life.gone or isinstance(wanted, Serve), f"in the end not gone, {life.world.observed}")
        self.wire.forget()
        await asyncio.sleep(3 * times.DRIFT)
        require(not self.wire.writes, f"writes in peace: {self.wire.writes}")
        self._check()

    def _may_be_had(self, life: Life) -> bool:
        """False where others have made the Service one that the agent rightly refuses."""
        observed = life.world.observed
        refused = observed.blocked.code if observed is not None and observed.blocked is not None else ""
        rightly = {
            "": True,
            "adopt": self.adopt == "own",
            "foreign": self.kind == "foreign",  # nobody's mark says whose it was
        }
        self.promises.require(rightly.get(refused, False) or self.rivals_own, f"in the end {observed}")
        return not refused

    # --- the driver and its neighbours -----------------------------------------------------------------

    async def ui_starts(self) -> None:
        bound = None if self.node.uis else self.node.bind(ours=True)
        if bound is not None:
            self.promises.say(f"the UI starts on {bound.port}")
            if self.hooked and self.life is not None:
                self._tell(HookBound(self.pid, bound.port, Scheme.HTTP, bound))
            else:
                self._job(self._found(bound, self.chance.uniform(0.25, 4)))

    async def _found(self, bound: Listener, seconds: float) -> None:
        """It takes a scan, and an answer over REST."""
        await asyncio.sleep(seconds)
        if self.node.uis.get(bound.port) == bound:
            self._tell(Scanned(self.node.listeners()))
            self._tell(Answered(bound, Scheme.HTTP, Verdict(Taken.OURS, "", APP)))

    async def ui_stops(self) -> None:
        """stop(): with the hook, the port closes when the agent says gone, or after the hook's time."""
        for bound in list(self.node.uis.values()):
            self.promises.say(f"the UI on {bound.port} stops")
            if self.hooked and self.life is not None:
                self._tell(HookStopping(self.pid))
                try:
                    await self.life.withdrawn(within=HOOK_TIMEOUT)
                    self._check()
                except TimeoutError:
                    self.promises.say("the hook's time is over")
            self._close(bound)

    async def ui_moves(self) -> None:
        """Another JVM of the driver's has a UI, then the former one's stop() is called, which waits as ever."""
        former, life = next(iter(self.node.uis.values()), None), self.life
        if former is None or life is None or not self.hooked:
            return
        known = former in [ui.listener for ui in life.world.proven]  # else nobody can say that it is the one
        bound = self.node.bind(ours=True) if known else None
        if bound is None:
            return
        self.promises.say(f"another UI starts on {bound.port}, the one on {former.port} stops")
        stops, self.pid = self.pid, self.pid + 1
        self._tell(HookBound(self.pid, bound.port, Scheme.HTTP, bound))
        await asyncio.sleep(self.chance.choice(PAUSES[:-1]))
        self._tell(HookStopping(stops))
        try:
            await life.until(lambda: withdrawn(life.world, stops), HOOK_TIMEOUT)
        except TimeoutError:
            self.promises.say("the hook's time is over")
        else:
            free = former.port not in self.cluster.ports()
            self.promises.require(free or self.promises.tainted, f"{former.port} closes, and is led to")
        self._close(former)

    async def ui_crashes(self) -> None:
        for bound in list(self.node.uis.values()):
            self.promises.say(f"the UI on {bound.port} crashes")
            self._close(bound)

    def _close(self, bound: Listener) -> None:
        del self.node.uis[bound.port]
        self._tell(Closed(bound.port, bound.inode))

    async def neighbour_starts(self) -> None:
        bound = self.node.bind(ours=False)
        if bound is not None:
            self.promises.say(f"a neighbour's UI starts on {bound.port}")
            if self.promises.tainted or self.life is None or not self.life.knows:
                self.promises.unguarded.add(bound.inode)
            self._tell(Scanned(self.node.listeners()))

    async def neighbour_stops(self) -> None:
        for bound in list(self.node.foreign.values())[:1]:
            del self.node.foreign[bound.port]
            self._tell(Closed(bound.port, bound.inode))

    async def rival_ends(self) -> None:
        if self.rivals_own and self.chance.random() < 0.3:
            self.promises.say("the neighbour's Pod ends")
            self.cluster.end_pod("drv-2")
            self.rivals_own = False

    # --- the agent -------------------------------------------------------------------------------------

    async def agent_starts(self) -> None:
        if self.life is None:
            self.promises.say("the agent starts")
            life = alive(self.wire, seed=self.chance.randrange(2**32), former=self.former)
            self.former = True
            self.life = await self._lives.enter_async_context(life)
            self.life.watch = self._guard
            self._tell(Scanned(self.node.listeners()))
            for bound in self.node.uis.values():  # the hook does not say its line again
                self._job(self._found(bound, self.chance.uniform(0.01, 4)))

    async def agent_crashes(self) -> None:
        if self.life is not None:
            self.promises.say("the agent crashes")
            self.life = None
            await self._lives.aclose()
            self.node.unkeep_all()

    def _tell(self, fact: Fact) -> None:
        if self.life is not None:
            self.life.tell(fact)

    def _guard(self) -> None:
        if self.life is not None:
            freed = guarded(self.life.world, self.wire.settings)
            self.node.keep([one.port for one in freed], self.wire.settings.settle)

    def _job(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)
