"""The main job on real parts, for each Spark version: a random port is proven, published, and withdrawn.

kube-apiserver with its controllers, the ServiceAccount's own token with the documented Role, agent and driver under
uid 185 in a network of their own.
"""

from __future__ import annotations

import json
import re
from collections import Counter

from sandbox.audit import Call
from sandbox.capture import Connection
from sandbox.services import routes
from tests.spark.lives import NAME
from tests.spark.whole_life import Record


def _writes(record: Record, resource: str = "services") -> list[Call]:
    return [call for call in record.calls if call.writes and call.resource == resource]


def _questions(record: Record) -> list[Connection]:
    """The agent's connections to the UI: nobody else connects there but the harness, by an address of its own."""
    return [
        one
        for one in record.connections
        if one.port == record.trace.ui_port and one.source != record.observer
    ]


def test_the_slice_held_exactly_the_bound_port_and_this_pod(record: Record) -> None:
    assert record.trace.ui_port not in range(4040, 4057), (
        "a port that nobody chose is not one of the defaults"
    )
    [endpoint] = record.published["endpoints"]
    assert endpoint["targetRef"]["name"] == record.pod["metadata"]["name"]
    assert endpoint["targetRef"]["uid"] == record.pod["metadata"]["uid"]
    assert endpoint["addresses"] == [record.ip]
    assert routes([record.published]) == {(record.ip, record.trace.ui_port)}


def test_the_page_behind_it_names_this_application(record: Record) -> None:
    used = record.work.used
    assert used.jobs_page.status == 200
    title = re.search(rb"<title>\s*(.*?)\s*</title>", used.jobs_page.body, re.DOTALL)
    assert title is not None
    assert title[1].decode() == f"{NAME} - Spark Jobs"
    [application] = json.loads(used.applications.body)
    assert (application["id"], application["name"]) == (record.application, NAME)


def test_nothing_was_written_before_the_proof(record: Record) -> None:
    first_write = min(call.at for call in record.calls if call.writes)
    answered = [one.closed_at for one in _questions(record) if one.closed_at is not None]
    assert record.trace.bound_at < answered[-1] < first_write
    assert record.changes.of_service(record.service)[0].type == "ADDED"
    assert record.changes.of_service(record.service)[0].at > answered[-1]


def test_no_question_was_asked_after_the_proof(record: Record) -> None:
    assert max(one.opened_at for one in _questions(record)) < record.published_at


def test_it_led_nowhere_but_to_the_bound_port_while_that_was_bound(record: Record) -> None:
    steps = [step for step in record.changes.routed(record.service) if step.routes]
    assert [step.routes for step in steps] == [{(record.ip, record.trace.ui_port)}]
    assert record.trace.bound_at < steps[0].at < record.trace.closed_at


def test_steady_state_writes_nothing(record: Record) -> None:
    published_by = max(call.at for call in _writes(record) if call.at < record.published_at)
    stopped = record.trace.context.stop_requested_at
    assert stopped is not None
    between = [call for call in record.calls if published_by < call.at < stopped and call.writes]
    # the Event that tells of the publishing follows the write
    assert [call.resource for call in between] == ["events"]
    versions = {
        change.object["metadata"]["resourceVersion"]
        for change in record.changes.of_service(record.service)
        if record.published_at <= change.at < stopped
    }
    assert len(versions) <= 1


def test_after_the_context_stopped_the_slice_was_empty_and_the_jvm_ran_on(record: Record) -> None:
    assert record.changes.leads_to(record.service) == set()
    assert record.parked_at > (record.trace.context.stop_requested_at or 0)
    assert record.work.jvm_ran_on
    assert record.work.exit_code == 0
    assert record.trace.exited_at is not None
    assert record.parked_at < record.trace.exited_at


def test_the_jobs_result_is_right_and_the_agent_ended_well(record: Record) -> None:
    assert record.work.used.result == 499500
    assert record.exit_code == 0
    assert [
        line.fields["level"] for line in record.log if line.fields["level"] not in ("info", "debug")
    ] == []


def test_the_api_server_was_asked_little(record: Record) -> None:
    """Three writes: created parked, published, parked; and what was read for them."""
    assert [call.verb for call in _writes(record)] == ["create", "patch", "patch"]
    assert all(call.code in (200, 201) for call in _writes(record))
    asked = Counter((call.verb, call.resource) for call in record.calls)
    assert 1 <= asked["list", "endpointslices"] <= 10
    assert asked["create", "events"] == 2
    others = {what for what in asked if what[0] in ("update", "delete", "deletecollection", "watch")}
    assert others == set()
    # each change of what is wanted reads the Service once
    assert asked["get", "services"] <= 8
