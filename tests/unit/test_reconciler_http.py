"""Reconciler and client together over a real socket: the faults that only a wire has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from agent.act.kube import Kube
from agent.model import DriverEnded, HookStopping, State
from sandbox.standin import Answer, Drop, Fault, StandIn, Truncate, When
from sandbox.standin.resources import ENDPOINT_SLICES, NAMESPACES, PODS, SERVICE_ACCOUNTS, SERVICES
from tests.support.cluster import ALL_RIGHTS, running_pod
from tests.support.life import Life, alive
from tests.support.make import NAMESPACE, bound, settings


@asynccontextmanager
async def running(*, tls: bool = False) -> AsyncIterator[tuple[StandIn, Life]]:
    """A stand-in with our Pod and the documented rights, and a life beside it."""
    async with StandIn.start(tls=tls) as api:
        api.store.create(NAMESPACES, "", {"metadata": {"name": NAMESPACE}})
        uid = api.store.create(PODS, NAMESPACE, running_pod())["metadata"]["uid"]
        api.token_file.write_text(api.grant(NAMESPACE, "spark", ALL_RIGHTS))
        given = replace(settings(uid=uid), api_url=api.url, token_file=api.token_file)
        given = given if api.ca_file is None else replace(given, ca_file=api.ca_file)
        async with Kube.open(given) as kube, alive(kube, given) as life:
            yield api, life


def targets(api: StandIn) -> set[int]:
    """The ports to which the slices lead."""
    return {
        port["port"]
        for piece in api.store.list(ENDPOINT_SLICES, NAMESPACE)
        for port in piece.get("ports") or []
        if piece.get("endpoints")
    }


def writes(api: StandIn) -> list[str]:
    return [request.verb for request in api.requests if request.verb not in ("get", "list")]


@pytest.mark.parametrize("tls", [False, True])
async def test_a_whole_life(tls: bool) -> None:
    async with running(tls=tls) as (api, life):
        life.tell(bound(39001))
        await life.published(within=10)
        life.tell(HookStopping(7))
        await life.withdrawn(within=10)
        assert targets(api) == set()
        life.tell(DriverEnded("Completed"))
        await life.withdrawn(within=10)
        assert api.store.list(SERVICES, NAMESPACE) == []
        assert writes(api) == ["create", "patch", "patch", "delete"]


@pytest.mark.parametrize(
    ("effect", "when"),
    [
        pytest.param(Drop(), When.AFTER, id="the answer to a good patch is lost"),
        pytest.param(Drop(reset=True), When.AFTER, id="the answer to a good patch is a reset"),
        pytest.param(Drop(reset=True), When.BEFORE, id="reset before the write"),
        pytest.param(Truncate(), When.AFTER, id="half an answer"),
        pytest.param(Answer(500), When.AFTER, id="a 500, though written"),
        pytest.param(Answer(409), When.BEFORE, id="a conflict"),
        pytest.param(Answer(429, retry_after=1), When.BEFORE, id="throttled"),
    ],
)
async def test_a_fault_at_each_patch_of_a_life(effect: Drop | Truncate | Answer, when: When) -> None:
    async with running() as (api, life):
        faults: list[Fault] = [api.faults.plant(effect, verb="patch", when=when, times=1)]
        life.tell(bound(39001))
        await life.published(within=10)
        faults.append(api.faults.plant(effect, verb="patch", when=when, times=1))
        life.tell(HookStopping(7))
        await life.withdrawn(within=10)
        assert targets(api) == set()
        assert [fault.hits for fault in faults] == [1, 1]


async def test_a_token_that_is_renewed_in_the_middle_of_a_life_is_not_noticed() -> None:
    async with running() as (api, life):
        life.tell(bound(39001))
        await life.published(within=10)
        api.store.delete(SERVICE_ACCOUNTS, NAMESPACE, "spark")
        api.token_file.write_text(api.grant(NAMESPACE, "renewed", ALL_RIGHTS))
        life.tell(HookStopping(7))
        await life.withdrawn(within=10)
        assert all(told.blocked is None for told in life.told)


async def test_a_writer_of_twenty_patches_a_second_is_outlasted() -> None:
    async with running() as (api, life):
        life.tell(bound(39001))
        await life.published(within=10)

        async def rival() -> None:
            for number in range(1, 21):
                await asyncio.sleep(0.05)
                body = {"metadata": {"labels": {"n": str(number)}}}
                await api.admin.request("PATCH", f"/api/v1/namespaces/{NAMESPACE}/services/ui", body)

        async with api.admin:
            writing = asyncio.ensure_future(rival())
            rounds = 0
            while not writing.done():
                rounds += 1
                life.tell(HookStopping(7))
                await life.withdrawn(within=10)
                life.tell(bound(39001, inode=rounds))
                await life.published(within=10)
            await writing
        live = api.store.get(SERVICES, NAMESPACE, "ui")
        assert rounds >= 10
        assert live["metadata"]["labels"]["n"] == "20"
        assert life.state is State.PUBLISHED
