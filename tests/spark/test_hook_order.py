"""Gone before it is gone: at every orderly end the Service leads to nothing before the UI closes its port.

Each Spark version comes to its end in each way once, on the real control plane. The instants are those of a watch and of
the kernel's destroy event, on one clock and outside of the agent. `python -m bench.margins` does the same many times.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sandbox.control_plane import ControlPlane
from sandbox.prompt import run_promptly
from sandbox.spark.install import VERSIONS
from sandbox.standin import StandIn
from sandbox.standin.faults import Delay
from tests.spark.hook_endings import Cell, record
from tests.spark.hook_lives import WAYS, Ending, Way, life, observe, violations

NEWEST = "4.1.4"
ANSWER_BOUND = 2.0  # s: HOOK_TIMEOUT as it is when not set
SLOW_API = 0.7


@pytest.fixture(scope="session")
def endings(control_plane: ControlPlane) -> Mapping[Cell, list[Ending]]:
    """One ending of each kind, recorded once."""
    return run_promptly(record(control_plane))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", VERSIONS)
def test_parked_before_the_port_closes(endings: Mapping[Cell, list[Ending]], version: str, way: Way) -> None:
    for ending in endings[Cell(version, way)]:
        assert ending.result == 499500
        assert ending.margin > 0, f"parked {-ending.margin / 1e6:.1f} ms after the UI's port had closed"
        served, parked = ending.history
        assert {port for _, port in served.routes} == {ending.port}
        assert parked.routes == frozenset()
        assert violations(ending.history, [ending.listener], ending.ip) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_driver_waits_once_and_for_the_answer(
    endings: Mapping[Cell, list[Ending]], version: str, way: Way
) -> None:
    for ending in endings[Cell(version, way)]:
        asked, *more = ending.held
        assert more == []
        assert asked.closed_at is not None
        assert ending.empty_at < asked.closed_at < ending.closed_at
        assert asked.closed_at - asked.opened_at < ANSWER_BOUND * 1e9


@pytest.mark.parametrize("cell", [Cell(NEWEST, "stop()", hook=False), Cell(NEWEST, "SIGKILL")], ids=str)
def test_without_an_announcement_it_is_parked_after(endings: Mapping[Cell, list[Ending]], cell: Cell) -> None:
    (ending,) = endings[cell]
    served, parked = ending.history
    assert ending.held == []
    assert parked.routes == frozenset()
    assert served.at < ending.closed_at < parked.at
    (found,) = violations(ending.history, [ending.listener], ending.ip)
    assert found.endswith("the closing of its socket")


async def test_a_slow_api_is_waited_for_and_an_answer_at_once_is_found_out() -> None:
    async with StandIn.start(tls=True) as stand_in, life(stand_in) as living, living.driver(NEWEST) as driver:
        await driver.ui_bound()
        await living.published(driver.trace.ui_port)
        stand_in.faults.plant(Delay(SLOW_API), verb="patch", resource="services")
        patient = await observe(living, driver, NEWEST, "stop()")
        assert violations(patient.history, [patient.listener], living.ip) == []
        assert patient.margin > 0

        assert await living.agent.terminate() == 0
        await living.restart(module="tests.support.hasty_agent")
        await driver.new_context()
        hasty = await observe(living, driver, NEWEST, "stop()")
        (found,) = violations(hasty.history, [hasty.listener], living.ip)
        assert found.startswith(f"led to port {hasty.port} until")
        assert hasty.margin < 0
