"""A driver of kubeflow/spark-operator: its own Service is kept on the bound port, and nothing else of it changes."""

from __future__ import annotations

import copy

from sandbox.apiclient import Object
from tests.e2e.cut_short import PARKED
from tests.e2e.kubeflow import CONFIGURED, NAME, Kubeflow

OURS = "spark-ui-agent/"
# the API server's own account of writes
ACCOUNT = ("resourceVersion", "generation", "managedFields")


def _theirs(service: Object) -> Object:
    """Return a Service without what the agent may write, and without the API server's account of it."""
    left = copy.deepcopy(service)
    for name in ACCOUNT:
        left["metadata"].pop(name, None)
    foreign = {
        key: value for key, value in left["metadata"].pop("annotations", {}).items() if OURS not in key
    }
    del left["spec"]["selector"]
    del left["spec"]["ports"][0]["targetPort"]
    return left | {"annotations": foreign}


def test_the_page_is_served_on_a_port_that_the_operator_does_not_know(kubeflow: Kubeflow) -> None:
    assert kubeflow.made["spec"]["ports"][0]["targetPort"] == CONFIGURED != kubeflow.job.port
    assert f"<title>{NAME} - Spark Jobs</title>".encode() in kubeflow.job.page.body


def test_from_the_agents_first_write_on_the_service_led_to_the_bound_port_alone(kubeflow: Kubeflow) -> None:
    led = [step.routes for step in kubeflow.job.routed]
    assert led[-3:] == [set(), {kubeflow.job.route}, set()]
    address, _ = kubeflow.job.route
    assert set().union(*led[:-3]) <= {(address, CONFIGURED)}, (
        "the operator's own target, before the agent runs"
    )
    first = next(one.object for one in kubeflow.job.services if one.type == "MODIFIED")
    assert set(first["spec"]["selector"]) == {PARKED}


def test_it_was_parked_before_the_ui_closed(kubeflow: Kubeflow) -> None:
    assert kubeflow.job.parked < kubeflow.job.closed
    assert kubeflow.job.status["proof"] == "hook"


def test_what_is_the_operators_is_never_touched(kubeflow: Kubeflow) -> None:
    for change in kubeflow.job.services:
        assert _theirs(change.object) == _theirs(kubeflow.made)
    assert len(kubeflow.made["metadata"]["ownerReferences"]) == 1


def test_the_service_is_still_there_in_the_end_without_our_marks(kubeflow: Kubeflow) -> None:
    assert "DELETED" not in [change.type for change in kubeflow.job.services]
    assert set(kubeflow.left["spec"]["selector"]) == {PARKED}
    assert kubeflow.left["metadata"].get("annotations", {}) == {}


def test_the_agent_made_no_service_of_its_own(kubeflow: Kubeflow) -> None:
    assert kubeflow.job.status["service"] == kubeflow.made["metadata"]["name"]
    assert f"{NAME}-ui" not in kubeflow.job.names


def test_the_job_ends_well(kubeflow: Kubeflow) -> None:
    assert (kubeflow.job.ending.phase, kubeflow.job.ending.exit_code) == ("Succeeded", 0)
    assert kubeflow.job.ending.steps["result"] == "499500"
