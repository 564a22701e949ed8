"""The virtual clock: order and lengths as on a real one, without the waiting."""

from __future__ import annotations

import asyncio

import pytest

from tests.history.clock import StuckError, run, virtual


@virtual
async def test_sleepers_wake_in_order_and_on_time() -> None:
    loop = asyncio.get_running_loop()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append((name, round(loop.time(), 6)))

    await asyncio.gather(sleeper("c", 86400), sleeper("a", 0.001), sleeper("b", 5))

    assert woken == [("a", 0.001), ("b", 5.0), ("c", 86400.0)]


@virtual
async def test_a_timeout_strikes_at_its_time() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(300):
            await asyncio.Event().wait()

    assert asyncio.get_running_loop().time() == pytest.approx(300)


@virtual
async def test_time_stands_still_while_something_is_ready() -> None:
    for _ in range(1000):
        await asyncio.sleep(0)

    assert asyncio.get_running_loop().time() == 0.0


def test_waiting_for_what_never_comes_is_an_error_at_once() -> None:
    async def never() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(StuckError):
        run(never())
