"""Each change of status is said once: in the log, in the gauges and to the followers."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from agent.model import State, Status
from agent.tell import logs
from agent.tell.announcer import Announcer
from agent.tell.metrics import Metrics
from tests.unit.telling import BLOCKED, PARKED, PUBLISHED, WAITING


def clock() -> Callable[[], datetime]:
    """A minute passes between two looks."""
    looks = iter(range(1000))
    return lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=next(looks))


class Heard:
    """An announcer and what it said."""

    def __init__(self) -> None:
        self.out = io.StringIO()
        self.metrics = Metrics()
        self.followed: list[Status] = []
        self.announcer = Announcer(
            logs.configure("info", "json", self.out), self.metrics, [self.followed.append], clock()
        )

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    def samples(self) -> dict[str, str]:
        lines = [line for line in self.metrics.text().splitlines() if not line.startswith("#")]
        return {
            name.removeprefix("spark_ui_agent_"): value
            for name, value in (line.rsplit(" ", 1) for line in lines)
        }


def test_one_line_for_each_change_and_none_for_each_fact() -> None:
    heard = Heard()
    for status in (WAITING, WAITING, replace(WAITING, found="other words"), PUBLISHED, PUBLISHED, PARKED):
        heard.announcer.tell(status)
    assert [line["event"] for line in heard.lines()] == ["waiting", "published", "parked"]
    assert [status.state for status in heard.followed] == [State.WAITING, State.PUBLISHED, State.PARKED]


def test_another_port_reason_or_service_is_news_and_the_hook_is_not() -> None:
    heard = Heard()
    for status in (
        PUBLISHED,
        replace(PUBLISHED, port=40124),
        replace(PUBLISHED, port=40124, service="other"),
        replace(PUBLISHED, port=40124, service="other", hook="connected"),
        BLOCKED,
        replace(BLOCKED, reason="selector"),
    ):
        heard.announcer.tell(status)
    assert len(heard.lines()) == 5


def test_the_line_says_what_is_known_and_a_blocked_one_is_a_warning() -> None:
    heard = Heard()
    heard.announcer.tell(PUBLISHED)
    heard.announcer.tell(BLOCKED)
    published, blocked = heard.lines()
    for line in (published, blocked):
        line.pop("timestamp")
    assert published == {
        "event": "published",
        "level": "info",
        "service": "etl-ui",
        "port": 40123,
        "scheme": "http",
        "application": "spark-aaa",
        "proof": "rest",
    }
    assert blocked == {
        "event": "blocked",
        "level": "warning",
        "service": "etl-ui",
        "application": "spark-aaa",
        "reason": "rbac",
        "found": "403 Forbidden: patch services",
        "remedy": "add the verb patch",
    }


def test_since_is_the_time_of_the_last_change() -> None:
    heard = Heard()
    assert heard.announcer.since == "2026-01-01T00:00:00Z"
    heard.announcer.tell(WAITING)
    assert heard.announcer.since == "2026-01-01T00:01:00Z"
    heard.announcer.tell(WAITING)
    assert heard.announcer.since == "2026-01-01T00:01:00Z"
    heard.announcer.tell(PUBLISHED)
    assert heard.announcer.since == "2026-01-01T00:02:00Z"


def test_gauges_follow() -> None:
    heard = Heard()
    heard.announcer.tell(BLOCKED)
    samples = heard.samples()
    assert samples['blocked{reason="rbac"}'] == "1"
    assert {name for name, value in samples.items() if name.startswith("state{") and value == "1"} == {
        'state{state="blocked"}'
    }
    assert len([name for name in samples if name.startswith("state{")]) == len(State)
    heard.announcer.tell(PUBLISHED)
    samples = heard.samples()
    assert 'blocked{reason="rbac"}' not in samples
    assert samples['state{state="blocked"}'] == "0"
    assert samples["last_change_timestamp_seconds"] == "1767225720"


def test_publishes_and_parks_are_counted() -> None:
    heard = Heard()
    for status in (WAITING, PUBLISHED, PARKED, PUBLISHED, replace(PUBLISHED, port=40124), BLOCKED, WAITING):
        heard.announcer.tell(status)
    samples = heard.samples()
    assert (samples["publishes_total"], samples["parks_total"]) == ("3", "2")
