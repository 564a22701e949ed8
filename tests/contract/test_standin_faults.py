"""The stand-in's faults: what a client sees of each, and what was written meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from sandbox.apiclient import ApiClient, Object
from sandbox.objects import (
    create_node,
    create_pod,
    create_service,
    get_slices,
    routes,
    services,
    wait_for_routes,
)
from sandbox.standin import Answer, Delay, Drop, Hold, Recorded, Silence, StandIn, Truncate, When
from tests.contract.objects import PARKED, UI, UI_ROUTE, get_service, patch_service

LABELS: Object = {"metadata": {"labels": {"a": "1"}}}


@pytest.fixture
async def standin() -> AsyncIterator[StandIn]:
    """A stand-in with a Service called ``ui`` in the namespace ``default``."""
    async with StandIn.start() as running:
        await create_node(running.admin)
        await create_service(running.admin, "default", "ui", selector=UI)
        yield running


@pytest.fixture
def api(standin: StandIn) -> ApiClient:
    """A client with every right."""
    return standin.admin


async def written(api: ApiClient) -> bool:
    """Return whether the patch of the test has reached the Service."""
    return "labels" in (await get_service(api, "default"))["metadata"]


def is_patch_of_ui(seen: Recorded) -> bool:
    """Return whether a request is a patch of the Service."""
    return (seen.verb, seen.resource, seen.name) == ("patch", "services", "ui")


@pytest.mark.parametrize(
    ("drop", "error"),
    [(Drop(), aiohttp.ServerDisconnectedError), (Drop(reset=True), aiohttp.ClientOSError)],
    ids=["closed", "reset"],
)
@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER], ids=["before", "after"])
async def test_a_dropped_connection_gives_no_answer(
    standin: StandIn, api: ApiClient, when: When, drop: Drop, error: type[Exception]
) -> None:
    standin.faults.plant(drop, verb="patch", resource="services", when=when, times=1)
    with pytest.raises(error):
        await patch_service(api, "default", "ui", LABELS)
    assert await written(api) is (when is When.AFTER)
    assert (await patch_service(api, "default", "ui", LABELS)).status == 200
    lost, answered = [seen for seen in standin.requests if is_patch_of_ui(seen)]
    assert (lost.status, lost.ended, answered.status) == (None, True, 200)


async def test_half_an_answer_is_no_answer(standin: StandIn, api: ApiClient) -> None:
    standin.faults.plant(Truncate(), verb="patch", times=1)
    with pytest.raises(aiohttp.ClientPayloadError):
        await patch_service(api, "default", "ui", LABELS)
    assert await written(api)


@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER], ids=["before", "after"])
async def test_silence_lasts_until_the_client_gives_up(standin: StandIn, api: ApiClient, when: When) -> None:
    fault = standin.faults.plant(Silence(), verb="patch", name="ui", when=when)
    waiting = asyncio.ensure_future(patch_service(api, "default", "ui", LABELS))
    await standin.recording.until(is_patch_of_ui)
    assert await written(api) is (when is When.AFTER)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    [left] = await standin.recording.until(lambda seen: is_patch_of_ui(seen) and seen.ended)
    assert (left.status, fault.hits) == (None, 1)


async def test_a_stand_in_that_ends_lets_go_of_everybody(api: ApiClient, standin: StandIn) -> None:
    async with StandIn.start() as ending:
        ending.faults.plant(Silence())
        ending.faults.plant(Hold(), verb="create")
        waiting = [
            asyncio.ensure_future(ending.admin.request("GET", services("default"))),
            asyncio.ensure_future(ending.admin.request("POST", services("default"), {})),
        ]
        await ending.recording.until(lambda seen: not seen.ended, count=2)
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, aiohttp.ClientError) for result in results)


async def test_a_held_request_goes_on_when_it_is_released(standin: StandIn, api: ApiClient) -> None:
    hold = Hold()
    standin.faults.plant(hold, verb="patch")
    waiting = asyncio.ensure_future(patch_service(api, "default", "ui", LABELS))
    await hold.reached.wait()
    assert not await written(api)
    hold.release()
    assert (await waiting).status == 200
    assert await written(api)


async def test_a_write_that_is_overtaken_conflicts(standin: StandIn, api: ApiClient) -> None:
    version = (await get_service(api, "default"))["metadata"]["resourceVersion"]
    hold = Hold()
    standin.faults.plant(hold, verb="patch", times=1)
    fenced = {"metadata": {"resourceVersion": version}, "spec": {"selector": {"late": "yes"}}}
    late = asyncio.ensure_future(patch_service(api, "default", "ui", fenced))
    await hold.reached.wait()
    assert (await patch_service(api, "default", "ui", LABELS)).status == 200
    hold.release()
    assert (await late).status == 409
    assert (await get_service(api, "default"))["spec"]["selector"] == UI


async def test_a_delay_is_only_a_delay(standin: StandIn, api: ApiClient) -> None:
    fault = standin.faults.plant(Delay(0.001), when=When.AFTER)
    assert (await patch_service(api, "default", "ui", LABELS)).status == 200
    assert fault.hits == 1


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (409, "Conflict"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
    ],
)
async def test_a_planted_answer_comes_n_times(
    standin: StandIn, api: ApiClient, status: int, reason: str
) -> None:
    fault = standin.faults.plant(Answer(status, retry_after=3), verb="patch", times=2)
    for _ in range(2):
        answer = await patch_service(api, "default", "ui", LABELS)
        assert (answer.status, answer.body["reason"]) == (status, reason)
        assert answer.headers["Retry-After"] == "3"
        assert answer.body["details"] == {"retryAfterSeconds": 3}
        assert not await written(api)
    assert (await patch_service(api, "default", "ui", LABELS)).status == 200
    assert (fault.hits, fault.left) == (2, 0)


async def test_an_error_after_the_write_hides_it(standin: StandIn, api: ApiClient) -> None:
    standin.faults.plant(Answer(504), verb="patch", when=When.AFTER, times=1)
    assert (await patch_service(api, "default", "ui", LABELS)).status == 504
    assert await written(api)


async def test_a_fault_strikes_only_what_it_names(standin: StandIn, api: ApiClient) -> None:
    fault = standin.faults.plant(Answer(503), verb="get", resource="services", name="ui")
    assert (await api.request("GET", services("default", "ui"))).status == 503
    assert (await api.request("GET", services("default"))).status == 200
    assert (await patch_service(api, "default", "ui", LABELS)).status == 200
    standin.faults.clear()
    assert (await api.request("GET", services("default", "ui"))).status == 200
    assert fault.hits == 1


async def test_a_write_can_be_looked_at_before_the_controllers_follow(
    standin: StandIn, api: ApiClient
) -> None:
    await create_pod(api, "default", "driver", labels=UI)
    await wait_for_routes(api, "default", "ui", UI_ROUTE)
    standin.settle()
    standin.settle_delay = None
    await patch_service(api, "default", "ui", {"spec": {"selector": {**dict.fromkeys(UI), **PARKED}}})
    assert routes(await get_slices(api, "default", "ui")) == UI_ROUTE
    standin.settle()
    assert routes(await get_slices(api, "default", "ui")) == set()
