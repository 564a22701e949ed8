"""Fewer rights mean fewer features, each said; nothing unsafe, and given rights are found without a restart."""

from __future__ import annotations

import asyncio

import pytest

from agent import times
from agent.model import Draining, HookStopping, State
from sandbox.standin import Answer
from sandbox.standin.resources import Object
from tests.history.clock import virtual
from tests.support.cluster import ALL_RIGHTS, Cluster
from tests.support.life import alive, serving
from tests.support.make import OTHER_APP, adoptable, bound, service
from tests.support.wire import Wire, wired


def without(verb: str, resource: str) -> list[Object]:
    """All rights but this one."""
    return [
        {
            **rule,
            "verbs": [item for item in rule["verbs"] if item != verb or resource not in rule["resources"]],
        }
        for rule in ALL_RIGHTS
    ]


def world(rules: list[Object], *, adopt: bool = True) -> tuple[Cluster, Wire]:
    cluster, wire = wired(*([adoptable()] if adopt else []))
    cluster.grant(rules)
    return cluster, wire


@virtual
async def test_the_documented_rights_are_enough_for_a_whole_life() -> None:
    cluster, wire = world(list(ALL_RIGHTS), adopt=False)
    async with serving(wire) as life:
        life.tell(HookStopping(7))
        await life.withdrawn()
        assert all(told.blocked is None for told in life.told)
        assert cluster.ports() == set()


@pytest.mark.parametrize(("verb", "adopt"), [("get", True), ("patch", True), ("create", False)])
@virtual
async def test_a_missing_right_is_told_by_name_at_a_slow_pace_and_found_once_it_is_given(
    verb: str, adopt: bool
) -> None:
    cluster, wire = world(without(verb, "services"), adopt=adopt)
    revision = cluster.revision()
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        assert life.state is State.BLOCKED
        blocked = life.told[-1].blocked
        assert blocked is not None
        assert blocked.code == "rbac"
        assert f'cannot {verb} resource "services"' in blocked.found
        assert cluster.revision() == revision

        await asyncio.sleep(600)
        assert len(wire.calls) < 3 * (600 / (0.8 * times.RETRY_REFUSED_MAX) + 12)

        cluster.set_rules(ALL_RIGHTS)
        await life.published(within=1.3 * times.RETRY_REFUSED_MAX)
        await asyncio.sleep(1)
        assert cluster.ports() == {39001}


@virtual
async def test_no_right_while_nothing_is_found_yet_is_asked_for_at_a_slow_pace() -> None:
    _, wire = world([])
    async with alive(wire) as life:
        await asyncio.sleep(3600)
        assert len(wire.calls) < 2 * (3600 / (0.8 * times.RETRY_REFUSED_MAX) + 12)
        assert life.state is State.BLOCKED


@virtual
async def test_without_the_right_to_read_slices_gone_is_the_write_and_a_moment() -> None:
    cluster, wire = world(without("list", "endpointslices"))
    loop = asyncio.get_running_loop()
    async with serving(wire) as life:
        await asyncio.sleep(1)
        before = loop.time()
        life.tell(HookStopping(7))
        await life.withdrawn()
        assert times.BLIND_GONE <= loop.time() - before < times.BLIND_GONE + 0.1
        assert cluster.ports() == set()
        wire.forget()
        await asyncio.sleep(2 * times.DRIFT)
        assert wire.writes == []


@virtual
async def test_without_the_right_to_read_pods_an_adopted_service_is_served_a_missing_one_is_not_made() -> (
    None
):
    cluster, wire = world(without("get", "pods"))
    async with serving(wire) as life:
        await asyncio.sleep(1)
        assert cluster.ports() == {39001}
        life.tell(Draining("SIGTERM"))
        await life.withdrawn()
        assert cluster.ports() == set()

    cluster, wire = world(without("get", "pods"), adopt=False)
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        blocked = life.told[-1].blocked
        assert blocked is not None
        assert blocked.code == "rbac"
        assert wire.writes == []


@virtual
async def test_without_the_right_to_read_pods_a_foreign_holder_is_never_held_to_be_over() -> None:
    held = service(selector={"uid-tag": "drv-1"}, annotations={"spark-ui-agent/holder": "drv-0/u0"})
    cluster, wire = wired(held)
    cluster.grant(without("get", "pods"))
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        blocked = life.told[-1].blocked
        assert blocked is not None
        assert blocked.code == "holder"
        assert wire.writes == []


@virtual
async def test_without_the_right_to_read_pods_a_foreign_applications_service_is_left_to_it() -> None:
    held = {"spark-ui-agent/holder": "drv-0/u0", "spark-ui-agent/application": OTHER_APP}
    selected = {"spark-app-selector": OTHER_APP, "spark-role": "driver"}
    cluster, wire = wired(service(selector=selected, annotations=held), ADOPT="any")
    cluster.grant(without("get", "pods"))
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        blocked = life.told[-1].blocked
        assert blocked is not None
        assert blocked.code == "foreign"
        assert wire.writes == []

        cluster.set_rules(ALL_RIGHTS)
        await life.published(within=1.3 * times.RETRY_REFUSED_MAX)


@virtual
async def test_a_full_quota_is_told_and_not_asked_for_in_a_hurry() -> None:
    _, wire = wired()
    message = "exceeded quota: services, requested: count/services=1"
    wire.faults.plant(Answer(403, message=message), verb="create", times=20)
    async with alive(wire) as life:
        life.tell(bound(39001))
        await life.settled()
        blocked = life.told[-1].blocked
        assert blocked is not None
        assert message in blocked.found
        await asyncio.sleep(600)
        assert len(wire.writes) < 25
        await life.published(within=3600)
