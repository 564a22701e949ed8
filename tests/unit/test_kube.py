"""The API client on a real wire: what goes out byte by byte, and how each answer comes back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent import times
from agent.act.kube import Kube
from agent.decide.tree import strings, text
from agent.model import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    ThrottledError,
    UnreachableError,
)
from agent.settings import Settings
from sandbox.standin import Answer, Drop, Silence, StandIn, Truncate, When
from sandbox.standin.resources import NAMESPACES, Object
from tests.support.make import NAMESPACE, settings

UI: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "ui"},
    "spec": {"selector": {"a": "b"}, "ports": [{"name": "spark-ui", "port": 80, "protocol": "TCP"}]},
}


def settings_for(api: StandIn) -> Settings:
    ca_file = api.ca_file or Path("/nonexistent/ca.crt")
    return replace(settings(), api_url=api.url, token_file=api.token_file, ca_file=ca_file)


@asynccontextmanager
async def connected(*, tls: bool = False, trusted: bool = True) -> AsyncIterator[tuple[StandIn, Kube]]:
    """A stand-in with our namespace, and a client of it."""
    async with StandIn.start(tls=tls, trusted=trusted) as api:
        api.store.create(NAMESPACES, "", {"metadata": {"name": NAMESPACE}})
        async with Kube.open(settings_for(api)) as kube:
            yield api, kube


# --- what goes out ----------------------------------------------------------------------------------------


async def test_a_patch_is_a_merge_patch_with_its_nulls_on_the_wire() -> None:
    async with connected() as (api, kube):
        await kube.create_service(UI)
        answer = await kube.patch_service("ui", {"spec": {"selector": {"a": None, "c": "d"}}})

        sent = api.requests[-1]
        assert sent.method == "PATCH"
        assert sent.content_type == "application/merge-patch+json"
        assert json.loads(sent.body) == {"spec": {"selector": {"a": None, "c": "d"}}}
        assert b'"a": null' in sent.body
        assert dict(sent.query) == {"fieldManager": "spark-ui-agent", "fieldValidation": "Strict"}
        assert sent.user_agent == "spark-ui-agent"
        assert strings(answer, "spec", "selector") == {"c": "d"}


async def test_a_creation_is_json_checked_strictly() -> None:
    async with connected() as (api, kube):
        await kube.create_service(UI)

        sent = api.requests[-1]
        assert sent.content_type == "application/json"
        assert dict(sent.query) == {"fieldManager": "spark-ui-agent", "fieldValidation": "Strict"}
        with pytest.raises(InvalidError):
            await kube.patch_service("ui", {"spec": {"selektor": {"a": "b"}}})


async def test_a_dry_run_changes_nothing() -> None:
    async with connected() as (api, kube):
        await kube.create_service(UI, dry_run=True)
        assert api.requests[-1].query["dryRun"] == "All"
        with pytest.raises(NotFoundError):
            await kube.get_service("ui")
        live = await kube.create_service(UI)
        await kube.patch_service("ui", {"spec": {"selector": {"c": "d"}}}, dry_run=True)
        assert await kube.get_service("ui") == live


async def test_a_deletion_names_the_uid() -> None:
    async with connected() as (api, kube):
        live = await kube.create_service(UI)
        with pytest.raises(ConflictError):
            await kube.delete_service("ui", "another")
        await kube.delete_service("ui", text(live, "metadata", "uid"))
        with pytest.raises(NotFoundError):
            await kube.get_service("ui")
        assert api.requests[1].json == {"preconditions": {"uid": "another"}}


async def test_lists_are_narrowed_by_the_server() -> None:
    async with connected() as (api, kube):
        await kube.create_service({**UI, "metadata": {"name": "ui", "labels": {"a": "1", "b": "2"}}})
        assert [
            text(item, "metadata", "name") for item in await kube.list_services({"a": "1", "b": "2"})
        ] == ["ui"]
        assert await kube.list_services({"a": "1", "b": "3"}) == []
        assert api.requests[-1].query["labelSelector"] == "a=1,b=3"
        await kube.list_slices("ui")
        assert api.requests[-1].query["labelSelector"] == "kubernetes.io/service-name=ui"
        assert api.requests[-1].path == f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"


async def test_what_would_be_allowed_is_asked_of_the_server() -> None:
    async with connected() as (api, _):
        rules = [{"apiGroups": [""], "resources": ["services"], "verbs": ["patch"], "resourceNames": ["ui"]}]
        token = api.grant(NAMESPACE, "spark", rules)
        api.token_file.write_text(token)
        async with Kube.open(settings_for(api)) as kube:
            assert await kube.allowed("patch", "services", name="ui")
            assert not await kube.allowed("patch", "services", name="another")
            assert not await kube.allowed("list", "endpointslices", "discovery.k8s.io")


# --- what comes back --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "kind", "retry_after"),
    [
        (Answer(400), InvalidError, None),
        (Answer(403), ForbiddenError, None),
        (Answer(404), NotFoundError, None),
        (Answer(409), ConflictError, None),
        (Answer(415), InvalidError, None),
        (Answer(422), InvalidError, None),
        (Answer(429, retry_after=7), ThrottledError, 7.0),
        (Answer(429), ThrottledError, None),
        (Answer(500), ServerError, None),
        (Answer(503, retry_after=2), ThrottledError, 2.0),
        (Answer(503), ServerError, None),
        (Answer(504), ServerError, None),
        (Answer(302), UnreachableError, None),
    ],
)
async def test_each_refusal_has_a_kind(
    effect: Answer, kind: type[ApiError], retry_after: float | None
) -> None:
    async with connected() as (api, kube):
        fault = api.faults.plant(effect, verb="get")
        with pytest.raises(ApiError) as raised:
            await kube.get_service("ui")
        assert type(raised.value) is kind
        assert raised.value.retry_after == retry_after
        assert fault.hits == 1


async def test_a_name_that_is_taken_is_no_conflict() -> None:
    async with connected() as (_, kube):
        await kube.create_service(UI)
        with pytest.raises(AlreadyExistsError):
            await kube.create_service(UI)


async def test_a_refusal_that_quotes_the_object_is_cut_short_and_names_no_token() -> None:
    async with connected() as (api, kube):
        api.faults.plant(Answer(422, message="x" * 5000), verb="get", times=1)
        with pytest.raises(InvalidError) as raised:
            await kube.get_service("ui")
        assert len(str(raised.value)) < 400
        assert api.token_file.read_text() not in str(raised.value)


@pytest.mark.parametrize("effect", [Drop(), Drop(reset=True), Truncate()])
@pytest.mark.parametrize("when", list(When))
async def test_an_answer_that_never_comes_whole_is_unreachable_and_is_not_asked_for_again(
    effect: Drop | Truncate, when: When
) -> None:
    async with connected() as (api, kube):
        fault = api.faults.plant(effect, verb="create", when=when)
        with pytest.raises(UnreachableError):
            await kube.create_service(UI)
        assert fault.hits == 1
        assert len(api.requests) == 1
        api.faults.clear()
        assert await kube.list_services({}) is not None  # the client goes on


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "CALL", 0.2)
    async with connected() as (api, kube):
        api.faults.plant(Silence(), verb="get")
        with pytest.raises(UnreachableError) as raised:
            await kube.get_service("ui")
        assert raised.value.reason == "Timeout"


async def test_nobody_listens() -> None:
    async with StandIn.start() as api:
        given = settings_for(api)
        token = given.token_file.read_text()
    given.token_file.parent.mkdir()
    try:
        given.token_file.write_text(token)
        async with Kube.open(given) as kube:
            with pytest.raises(UnreachableError):
                await kube.get_service("ui")
    finally:
        given.token_file.unlink()
        given.token_file.parent.rmdir()


async def test_each_call_is_counted_once() -> None:
    counted: list[tuple[str, str]] = []
    async with connected() as (api, _):
        given = settings_for(api)
        async with Kube.open(given, lambda verb, outcome: counted.append((verb, outcome))) as kube:
            await kube.list_services({})
            with pytest.raises(NotFoundError):
                await kube.get_service("ui")
            api.faults.plant(Drop(), verb="get")
            with pytest.raises(UnreachableError):
                await kube.get_service("ui")
    assert counted == [("GET", "200"), ("GET", "404"), ("GET", "unreachable")]
