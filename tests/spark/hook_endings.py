"""Every kind of ending, recorded: as many lives of each as asked for, a few at a time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sandbox.control_plane import ControlPlane
from sandbox.spark.install import VERSIONS, spark_home
from tests.spark.hook_lives import WAYS, Ending, Way, life, observe

AT_ONCE = 3  # drivers: on two cores four take longer than two and two
UNANNOUNCED = "4.1.4"  # the version that also ends without the hook, and by SIGKILL


@dataclass(frozen=True, order=True)
class Cell:
    """One version's way of ending, with the hook in the driver's logging or without."""

    version: str
    way: Way
    hook: bool = True

    def __str__(self) -> str:
        return f"{self.version} {self.way}{'' if self.hook else ', no hook'}"


@dataclass(frozen=True)
class _Plan:
    """What one JVM does: ``stops`` times stop(), each with a context of its own, then the last way."""

    version: str
    stops: int
    last: Way
    hook: bool = True

    @property
    def ways(self) -> Iterable[Way]:
        """The endings in their order."""
        for _ in range(self.stops):
            yield "stop()"
        yield self.last


def _plans(versions: Sequence[str], lives: int) -> Iterable[_Plan]:
    for _ in range(lives - 1):
        for version in versions:
            yield from (_Plan(version, 0, way) for way in WAYS if way != "stop()")
        if UNANNOUNCED in versions:
            yield _Plan(UNANNOUNCED, 0, "SIGKILL")
    for version in versions:
        yield _Plan(version, lives, "end")
        yield from (_Plan(version, 0, way) for way in WAYS if way not in ("stop()", "end"))
    if UNANNOUNCED in versions:
        yield _Plan(UNANNOUNCED, 0, "SIGKILL")
        yield _Plan(UNANNOUNCED, lives, "SIGKILL", hook=False)


async def record(
    plane: ControlPlane,
    *,
    lives: int = 1,
    versions: Sequence[str] = VERSIONS,
    told: Callable[[Cell, Ending], None] = lambda _cell, _ending: None,
) -> Mapping[Cell, list[Ending]]:
    """Live through every `Cell` ``lives`` times; ``told`` hears of each ending as it is there."""
    for version in versions:
        await asyncio.to_thread(spark_home, version)
    found: dict[Cell, list[Ending]] = defaultdict(list)
    room = asyncio.Semaphore(AT_ONCE)

    async def carry_out(plan: _Plan) -> None:
        async with (
            room,
            life(plane) as living,
            living.driver(plan.version, hook=plan.hook) as driver,
        ):
            for number, way in enumerate(plan.ways):
                if number:
                    await driver.new_context()
                ending = await observe(living, driver, plan.version, way)
                cell = Cell(plan.version, way, plan.hook)
                found[cell].append(ending)
                told(cell, ending)

    async with asyncio.TaskGroup() as group:
        for plan in _plans(versions, lives):
            group.create_task(carry_out(plan))
    return found
