"""A driver of the Apache operator: it gets a Service of its own, also where its configuration is elsewhere."""

from __future__ import annotations

import pytest

from sandbox.apiclient import Object
from sandbox.pods import DRIVER_CONTAINER
from tests.e2e.apache import ID, LABELS, OWN
from tests.e2e.operated import Operated


def _driver(pod: Object) -> Object:
    driver: Object = next(one for one in pod["spec"]["containers"] if one["name"] == DRIVER_CONTAINER)
    return driver


def test_the_pod_is_as_the_operator_makes_it(apache: Operated) -> None:
    assert {**LABELS, "spark-role": "driver"}.items() <= apache.pod["metadata"]["labels"].items()
    assert apache.pod["metadata"]["name"] == f"{ID}-driver"
    assert _driver(apache.pod)["env"][-1] == {"name": "SPARK_CONF_DIR", "value": "/opt/spark/conf"}


def test_the_page_is_served(apache: Operated) -> None:
    assert f"<title>{ID} - Spark Jobs</title>".encode() in apache.page.body


def test_the_log_hook_is_the_proof(apache: Operated) -> None:
    told = {name: apache.status[name] for name in ("proof", "hook", "service")}
    assert told == {"proof": "hook", "hook": "connected", "service": f"{ID}-ui"}


def test_it_was_parked_before_the_ui_closed(apache: Operated) -> None:
    assert [step.routes for step in apache.routed] == [set(), {apache.route}, set()]
    assert apache.parked < apache.closed


@pytest.mark.parametrize(("apache", "own"), [("as-made", False), ("elsewhere", True)], indirect=["apache"])
def test_the_drivers_own_logging_is_kept(apache: Operated, *, own: bool) -> None:
    told = [
        line
        for line in apache.log
        if "Bound SparkUI" in line or "SparkContext: Running Spark version" in line
    ]
    assert told
    assert {f" {OWN} " in line for line in told} == {own}


def test_the_job_ends_well_and_the_service_goes(apache: Operated) -> None:
    assert (apache.ending.phase, apache.ending.exit_code) == ("Succeeded", 0)
    assert apache.ending.steps["result"] == "499500"
    kinds = [change.type for change in apache.services]
    assert (kinds[0], kinds[-1]) == ("ADDED", "DELETED")
