"""The job never waits on us: the agent stopped by SIGSTOP at ten points, dead, and with an API server that hangs.

One driver lives through it all, a context for each case; what the driver waited for is in the packets to the hook's port.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from sandbox.capture import Connection
from sandbox.prompt import run_promptly
from sandbox.spark.driver import SparkDriver
from sandbox.spark.trace import Context, LogLine
from sandbox.standin import StandIn
from sandbox.standin.faults import Hold, Silence
from tests.spark.hook_lives import Life, life

VERSION = "4.1.4"
HOOK_TIMEOUT = 3.0
SETTING = f"{HOOK_TIMEOUT:g}s"
START_BOUND = 0.75  # s: how long the driver waits at a bind line, with HOOK_TIMEOUT as here: 0.25 to connect, 0.5 to be answered
SLACK = 2.0  # a busy machine wakes the driver late; a second wait would not fit in
FIRST_PORT = 4100

# When SIGSTOP comes and when SIGCONT, in the words of `Rig.cycle`.
POINTS: Mapping[str, tuple[str, str]] = {
    "before the driver starts": ("launch", "open"),
    "at bind": ("bound", "open"),
    "publishing": ("publishing", "computed"),
    "published": ("published", "computed"),
    "before stop()": ("computed", "stopped"),
    "asked, parking": ("parking", "stopped"),
    "after stop()": ("stopped", "over"),
    "before a context starts": ("start", "bound"),
    "for a context's whole life": ("start", "stopped"),
    "as the driver exits": ("computed", "exited"),
}
# When the API server falls silent; the dead agent does not hear it anyway.
FAULTS: Mapping[str, str] = {
    "dead": "start",
    "API silent before the bind": "start",
    "API silent before stop()": "published",
}


@dataclass(frozen=True)
class Lived:
    """One context: its result, and the connections to the hook's port while it started and while it ended."""

    result: object
    context: Context
    starting: Sequence[Connection]
    ending: Sequence[Connection]


@dataclass(frozen=True)
class Recorded:
    """All contexts by their case, the driver's log and its exit code. After each the Service led to nothing."""

    lived: Mapping[str, Lived]
    log: Sequence[LogLine]
    exit_code: int


class Rig:
    """A driver, and an agent that is stopped and continued as its contexts live."""

    def __init__(self, stand_in: StandIn, living: Life) -> None:
        self._stand_in = stand_in
        self._living = living
        self._freeze, self._thaw, self._silence = "", "", ""
        self._frozen = False
        self._ports = iter(range(FIRST_PORT, FIRST_PORT + 100))
        self.lived: dict[str, Lived] = {}

    @contextlib.asynccontextmanager
    async def launch(self, case: str) -> AsyncIterator[SparkDriver]:
        """Start the driver and live through its first context as ``case``."""
        self._freeze, self._thaw = POINTS[case]
        port = next(self._ports)
        self.at("launch")
        async with self._living.driver(VERSION, conf={"spark.ui.port": str(port)}) as driver:
            await self._live(driver, case, port, asyncio.ensure_future(driver.ui_bound()))
            yield driver

    async def cycle(self, driver: SparkDriver, case: str) -> None:
        """Live through another context as ``case``; the driver exits where the case says so."""
        self._freeze, self._thaw = POINTS.get(case, ("", ""))
        self._silence = FAULTS.get(case, "")
        port = next(self._ports)
        self.at("start")
        opening = asyncio.ensure_future(driver.new_context({"spark.ui.port": str(port)}))
        await self._live(driver, case, port, opening)

    def at(self, moment: str) -> None:
        """Stop or continue the agent, or silence its API server, if that is to be at this moment."""
        if moment == self._freeze:
            self._living.agent.kill(signal.SIGSTOP)
            self._frozen = True
        if moment == self._thaw:
            self._living.agent.kill(signal.SIGCONT)
            self._frozen = False
        if moment == self._silence:
            self._stand_in.faults.plant(Silence())

    async def _live(self, driver: SparkDriver, case: str, port: int, opening: Awaitable[object]) -> None:
        before = len(self._posts())
        async with self._held("publishing"):
            await driver.listens(port)
            self.at("bound")
            await opening
            self.at("open")
            if not self._frozen and self._freeze != "publishing" and self._silence in ("", "published"):
                await self._living.published(port)
                self.at("published")
        bound = len(self._posts())
        result = await driver.result()
        self.at("computed")
        async with self._held("parking"):
            await (driver.exit(0) if self._thaw == "exited" else driver.stop_context())
        await driver.ui_closed()
        self.at("exited")
        self.at("stopped")
        ending = self._posts()[bound:]
        self.at("over")
        self._stand_in.faults.clear()
        await self._living.empty()
        self.lived[case] = Lived(result, driver.trace.context, self._posts()[before:bound], ending)

    @contextlib.asynccontextmanager
    async def _held(self, moment: str) -> AsyncIterator[None]:
        """If the agent is to be stopped at this moment: hold its patch, stop it, let the patch go on."""
        if moment != self._freeze:
            yield
            return
        hold = Hold()
        self._stand_in.faults.plant(hold, verb="patch", resource="services")

        async def reached() -> None:
            await hold.reached.wait()
            self.at(moment)
            self._stand_in.faults.clear()

        async with asyncio.TaskGroup() as group:
            freezing = group.create_task(reached())
            yield
            async with asyncio.timeout(HOOK_TIMEOUT):
                await freezing

    def _posts(self) -> list[Connection]:
        return self._living.posts()


async def record() -> Recorded:
    async with StandIn.start(tls=True) as stand_in, life(stand_in, HOOK_TIMEOUT=SETTING) as living:
        rig = Rig(stand_in, living)
        first, *others, last = POINTS
        async with rig.launch(first) as driver:
            for case in others:
                await rig.cycle(driver, case)
            living.agent.kill(signal.SIGKILL)
            await living.agent.exited()
            for case in FAULTS:
                await rig.cycle(driver, case)
                if case == "dead":
                    await living.restart(HOOK_TIMEOUT=SETTING)
            await rig.cycle(driver, last)
            assert await living.agent.terminate() == 0
            return Recorded(rig.lived, driver.trace.log, await driver.exited())


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return run_promptly(record())


@pytest.mark.parametrize("case", [*POINTS, *FAULTS])
def test_the_driver_waits_within_the_bound_and_once(recorded: Recorded, case: str) -> None:
    lived = recorded.lived[case]
    assert lived.result == 499500
    for posts, bound in ((lived.starting, START_BOUND), (lived.ending, HOOK_TIMEOUT)):
        assert len(posts) <= 1
        for post in posts:
            assert post.closed_at is not None
            assert (post.closed_at - post.opened_at) / 1e9 < bound * SLACK
    stop = lived.context.stop_requested_at, lived.context.stopped_at
    if stop[0] is not None and stop[1] is not None:
        assert (stop[1] - stop[0]) / 1e9 < HOOK_TIMEOUT * SLACK


@pytest.mark.parametrize(
    "case", [name for name, (_, thaw) in POINTS.items() if thaw in {"stopped", "exited"}]
)
def test_a_stopped_agent_costs_the_whole_bound(recorded: Recorded, case: str) -> None:
    (post,) = recorded.lived[case].ending
    assert post.accepted  # by the kernel
    assert post.closed_at is not None
    assert (post.closed_at - post.opened_at) / 1e9 > HOOK_TIMEOUT / 2


def test_a_dead_agent_costs_nothing(recorded: Recorded) -> None:
    lived = recorded.lived["dead"]
    assert [post.accepted for post in (*lived.starting, *lived.ending)] == [False, False]


def test_the_job_and_its_log_are_whole(recorded: Recorded) -> None:
    assert recorded.exit_code == 0
    text = [line.text for line in recorded.log]
    assert [line for line in text if line.startswith("\tat ") or "Exception" in line] == []
    assert sum("SparkContext is stopping" in line for line in text) == len(POINTS) + len(FAULTS)
