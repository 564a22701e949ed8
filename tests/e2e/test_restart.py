"""An agent that is killed inside a running native Pod: kubelet starts it again, and nothing is lost."""

from __future__ import annotations

from tests.e2e.cut_short import BALANCER, Restarted


def test_the_agent_was_restarted_and_the_job_was_not_touched(restarted: Restarted) -> None:
    assert restarted.restarts == 1
    assert (restarted.ending.phase, restarted.ending.exit_code) == ("Succeeded", 0)
    assert restarted.ending.steps["result"] == "499500"


def test_the_hook_is_the_same_and_works(restarted: Restarted) -> None:
    before, after = restarted.hooks
    assert "Secret" in before
    assert before == after
    assert restarted.parked < restarted.closed


def test_the_service_and_its_addresses_stay(restarted: Restarted) -> None:
    assert {change.type for change in restarted.services} == {"MODIFIED"}
    assert restarted.services[0].at < restarted.killed < restarted.services[-1].at
    kept = [change.object for change in restarted.services]
    for path in (("metadata", "uid"), ("spec", "type"), ("spec", "clusterIP")):
        assert len({one[path[0]][path[1]] for one in kept}) == 1
    assert kept[0]["spec"]["type"] == "LoadBalancer"
    assert len({one["spec"]["ports"][0]["nodePort"] for one in kept}) == 1
    given = [[one["ip"] for one in each["status"]["loadBalancer"]["ingress"]] for each in kept]
    assert given == [[BALANCER]] * len(kept)


def test_the_same_page_is_behind_the_node_port_again(restarted: Restarted) -> None:
    assert [page.status for page in restarted.pages] == [200, 200]
    led = {route for step in restarted.routed for route in step.routes}
    assert led == {restarted.route}
