"""The admission policy: an unchanged spark-submit gets the agent, and another one works from inside its driver."""

from __future__ import annotations

from tests.e2e.admitted import Admitted


def test_each_driver_got_one_agent(admitted: Admitted) -> None:
    assert admitted.agents == [["spark-ui-agent"], ["spark-ui-agent"]]


def test_each_ui_was_published_and_parked(admitted: Admitted) -> None:
    for history in (admitted.outer, admitted.inner):
        assert [len(step.routes) for step in history] == [0, 1, 0]


def test_both_jobs_end_well(admitted: Admitted) -> None:
    assert [one.phase for one in admitted.endings] == ["Succeeded", "Succeeded"]
    assert admitted.endings[1].steps["result"] == "499500"
