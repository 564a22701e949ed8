"""An agent that is gone when the context stops: the job goes on as if it were not, and its Service leads to nothing."""

from __future__ import annotations

from tests.e2e.harm import outcome
from tests.e2e.lives import Alone
from tests.e2e.lost import Killed, Lost, Returned

SIGKILL_STATUS = 137


def test_an_agent_that_is_ended_for_its_memory_and_then_held_back_changes_nothing(
    lost: Lost, alone: Alone
) -> None:
    assert lost.reasons == ["OOMKilled", "Error"]
    assert lost.waiting == "CrashLoopBackOff"
    assert outcome(lost.ending) == outcome(alone.ending)


def test_the_service_leads_to_nothing_while_the_agent_is_held_back(lost: Lost) -> None:
    """The Pod is not ready while its sidecar is down."""
    assert {route for step in lost.routed for route in step.routes} == {lost.route}
    assert lost.routed[-1].routes == set()
    assert lost.routed[-1].at < lost.stopping


def test_stop_is_not_held_by_an_agent_that_is_held_back(lost: Lost) -> None:
    assert lost.posts
    assert [post.accepted for post in lost.posts] == [False] * len(lost.posts)


def test_an_agent_that_is_back_after_the_ui_has_closed_parks_before_the_pod_is_ready(
    returned: Returned, alone: Alone
) -> None:
    """A Pod that is Ready again gets its endpoints back: by then the Service has to lead to nothing."""
    assert {route for step in returned.routed for route in step.routes} == {returned.route}
    assert returned.routed[-1].routes == set()
    assert returned.routed[-1].at < returned.stopping
    parked = next(one for one in returned.services if one.at > returned.stopping)
    assert list(parked.object["spec"]["selector"]) == ["spark-ui-agent/parked"]
    assert parked.at < returned.ready
    assert outcome(returned.ending) == outcome(alone.ending)


def test_an_ordinary_container_that_is_killed_fails_the_pod_and_not_the_job(
    killed: Killed, alone: Alone
) -> None:
    """Under restartPolicy Never kubelet does not start it again, and a Pod succeeds only when all its containers did."""
    assert (killed.agent_status, killed.restarts) == (SIGKILL_STATUS, 0)
    assert killed.ending.phase == "Failed"
    assert outcome(killed.ending)[1:] == outcome(alone.ending)[1:]


def test_the_service_of_a_killed_agent_leads_to_nothing_from_then_on(killed: Killed) -> None:
    assert {route for step in killed.routed for route in step.routes} == {killed.route}
    assert killed.routed[-1].routes == set()
    assert killed.routed[-1].at < killed.stopping
