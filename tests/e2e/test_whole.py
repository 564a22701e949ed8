"""The shipped pod templates and nothing else: what a user of spark-submit gets."""

from __future__ import annotations

import pytest

from tests.e2e.lives import Alone, Slow, Whole, Worked

RESULT = "499500"
# what a Pod may take longer to be Completed with a native sidecar
COMPLETED_SECONDS = 3.0


def test_the_page_is_served_through_the_cluster_ip(whole: Whole) -> None:
    assert whole.first.status in (200, 302)
    assert whole.page.status == 200
    assert f"<title>{whole.name} - Spark Jobs</title>".encode() in whole.page.body


def test_the_service_led_to_the_bound_port_alone(whole: Whole) -> None:
    expected = [frozenset(), {(whole.address, whole.port)}, frozenset()]
    assert [step.routes for step in whole.routed] == expected
    assert (whole.port == 4040) == (whole.name != "random-port")


def test_it_was_parked_before_the_ui_closed(whole: Whole) -> None:
    assert whole.parked < whole.closed


def test_the_job_ended_as_without_the_agent(whole: Whole, alone: Alone) -> None:
    assert whole.ending.steps.keys() == alone.ending.steps.keys()
    assert whole.ending.steps["result"] == alone.ending.steps["result"] == RESULT
    for one in (whole, alone):
        assert (one.ending.phase, one.ending.exit_code, one.submit_status) == ("Succeeded", 0, 0)


def test_the_created_service_is_gone_in_the_end(whole: Whole) -> None:
    kinds = [change.type for change in whole.services]
    assert (kinds[0], kinds[-1]) == ("ADDED", "DELETED")
    assert {change.object["metadata"]["uid"] for change in whole.services} == {
        whole.services[0].object["metadata"]["uid"]
    }


@pytest.mark.parametrize("whole", ["native"], indirect=True)
def test_nothing_is_compiled_when_the_agent_starts(whole: Whole) -> None:
    assert whole.uncompiled == []


@pytest.mark.parametrize("whole", ["native", "overlays/random-port"], indirect=True)
def test_the_pod_is_completed_as_soon_as_without_the_agent(whole: Whole, alone: Alone) -> None:
    assert whole.lingered - alone.lingered <= COMPLETED_SECONDS


def test_an_executor_connects_and_works(worked: Worked) -> None:
    assert worked.ending.phase == "Succeeded"
    assert worked.ending.steps["executors"] == "1"
    assert worked.ending.steps["result"] == RESULT
    assert [len(step.routes) for step in worked.routed] == [0, 1, 0]


def test_with_a_hundredth_of_a_cpu_the_hook_still_stands_before_the_driver_starts(slow: Slow) -> None:
    assert slow.written < slow.started
    assert any('"event": "published"' in line for line in slow.log)
    assert (slow.ending.phase, slow.ending.steps["result"]) == ("Succeeded", RESULT)
