"""Events on the Pod: their bodies, one for each change, and that nothing waits for them."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from agent.model import ForbiddenError, ServerError, State, Status
from agent.tell import logs
from agent.tell.events import Events, body, reason_for
from tests.unit.telling import BLOCKED, PARKED, PUBLISHED, WAITING, made, running, turns

SETTINGS = made()
NOW = 1767225600_000000001  # 2026-01-01T00:00:00Z and a nanosecond
DRAINING = replace(PARKED, state=State.DRAINING, reason="draining")
DONE = replace(PARKED, state=State.DONE, reason="draining")


class Api:
    """Takes Events; raises what the test puts into `errors`, first come first."""

    def __init__(self) -> None:
        self.taken: list[Mapping[str, object]] = []
        self.errors: list[Exception] = []
        self.hangs = False
        self.sent = asyncio.Event()

    @property
    def reasons(self) -> list[object]:
        return [event["reason"] for event in self.taken]

    async def create(self, event: Mapping[str, object]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        if self.hangs:
            self.hangs = False
            await asyncio.Event().wait()
        self.taken.append(event)
        self.sent.set()


def events(api: Api, out: io.StringIO | None = None) -> Events:
    log = logs.configure("debug", "json", out or io.StringIO())
    return Events(SETTINGS, api.create, log, now=lambda: NOW)


def test_body() -> None:
    assert body(SETTINGS.identity, "SparkUIBlocked", "m" * 2000, NOW) == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "etl-driver.18867251edfa0001", "namespace": "team"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "etl-driver",
            "namespace": "team",
            "uid": SETTINGS.identity.uid,
        },
        "reason": "SparkUIBlocked",
        "message": "m" * 1024,
        "type": "Warning",
        "source": {"component": "spark-ui-agent"},
        "reportingComponent": "spark-ui-agent",
        "reportingInstance": "etl-driver",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }


def test_the_name_of_a_long_pod_is_cut_where_a_name_may_end() -> None:
    pod = "a" * 229 + "." + "b" * 23
    metadata = body(replace(SETTINGS.identity, pod=pod), "SparkUIParked", "", NOW)["metadata"]
    assert metadata == {"name": "a" * 229 + f".{NOW:x}", "namespace": "team"}


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (WAITING, None, None),
        (DRAINING, None, None),
        (PUBLISHED, "SparkUIPublished", "Normal"),
        (PARKED, "SparkUIParked", "Normal"),
        (DONE, "SparkUIParked", "Normal"),
        (BLOCKED, "SparkUIBlocked", "Warning"),
    ],
)
def test_reason(status: Status, reason: str | None, kind: str | None) -> None:
    assert reason_for(status) == reason
    if reason is not None:
        assert body(SETTINGS.identity, reason, "", NOW)["type"] == kind


@pytest.mark.parametrize(
    ("told", "sent"),
    [
        ([WAITING, PUBLISHED, DRAINING, PARKED, DONE], ["SparkUIPublished", "SparkUIParked"]),
        ([PUBLISHED, PUBLISHED, replace(PUBLISHED, hook="connected")], ["SparkUIPublished"]),
        ([PUBLISHED, replace(PUBLISHED, port=40124)], ["SparkUIPublished"] * 2),
        ([PUBLISHED, PARKED, PUBLISHED], ["SparkUIPublished", "SparkUIParked", "SparkUIPublished"]),
        ([BLOCKED, replace(BLOCKED, found="other words"), WAITING, BLOCKED], ["SparkUIBlocked"]),
        ([BLOCKED, replace(BLOCKED, reason="selector")], ["SparkUIBlocked"] * 2),
        ([BLOCKED, PUBLISHED, BLOCKED], ["SparkUIBlocked", "SparkUIPublished", "SparkUIBlocked"]),
    ],
)
async def test_one_event_for_each_change(told: list[Status], sent: list[str]) -> None:
    api = Api()
    part = events(api)
    async with running(part.run()):
        for status in told:
            part.tell(status)
            await turns(3)
    assert api.reasons == sent


async def test_the_message_says_where_it_leads() -> None:
    api = Api()
    part = events(api)
    part.tell(PUBLISHED)
    async with running(part.run()):
        await turns(3)
    assert api.taken[0]["message"] == "published: Service etl-ui leads to http port 40123"


async def test_a_full_queue_loses_the_oldest() -> None:
    api = Api()
    part = events(api)
    for port in range(1, 21):
        part.tell(replace(PUBLISHED, port=port))
    async with running(part.run()):
        await turns(30)
    assert [str(event["message"]).split()[-1] for event in api.taken] == [str(port) for port in range(13, 21)]


async def test_a_failed_event_is_lost_and_the_next_one_goes_out() -> None:
    api, out = Api(), io.StringIO()
    api.errors = [ServerError(500, "InternalError", "x")]
    part = events(api, out)
    part.tell(BLOCKED)
    part.tell(PUBLISHED)
    async with running(part.run()):
        await turns(5)
    assert api.reasons == ["SparkUIPublished"]
    assert json.loads(out.getvalue())["level"] == "debug"


async def test_an_event_without_an_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.times.EVENT", 0.01)
    api = Api()
    api.hangs = True
    part = events(api)
    part.tell(BLOCKED)
    part.tell(PUBLISHED)
    async with running(part.run()), asyncio.timeout(10):
        await api.sent.wait()
    assert api.reasons == ["SparkUIPublished"]


async def test_without_the_right_it_ends_quietly() -> None:
    api, out = Api(), io.StringIO()
    api.errors = [ForbiddenError(403, "Forbidden", "events is forbidden")]
    part = events(api, out)
    part.tell(BLOCKED)
    async with asyncio.timeout(10):
        await part.run()
    for port in range(1, 100):
        part.tell(replace(PUBLISHED, port=port))
    assert api.taken == []
    assert json.loads(out.getvalue())["level"] == "debug"
