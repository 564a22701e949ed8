"""Client mode in a notebook Pod: its Service shows the context that runs, stays without one, and goes with the Pod."""

from __future__ import annotations

from tests.e2e.cut_short import PARKED
from tests.e2e.notebook import KERNELS, Notebook


def test_the_page_is_that_of_the_context_that_runs(notebook: Notebook) -> None:
    assert [one.name for one in notebook.contexts] == list(KERNELS)
    for context in notebook.contexts:
        assert f"<title>{context.name} - Spark Jobs</title>".encode() in context.page.body


def test_the_log_hook_is_the_proof(notebook: Notebook) -> None:
    assert [one.proof for one in notebook.contexts] == ["hook", "hook"]


def test_the_service_led_to_each_port_and_to_nothing_between(notebook: Notebook) -> None:
    first, second = ({(notebook.address, one.port)} for one in notebook.contexts)
    assert [step.routes for step in notebook.routed] == [set(), first, set(), second, set()]


def test_each_was_parked_before_its_ui_closed(notebook: Notebook) -> None:
    for context in notebook.contexts:
        assert context.parked < context.closed


def test_the_kernels_end_well(notebook: Notebook) -> None:
    for steps, name in zip(notebook.steps, KERNELS, strict=True):
        assert steps["result"] == "499500"
        assert steps["await"] == f"{name}-end"


def test_the_service_stays_while_the_pod_runs_and_goes_with_it(notebook: Notebook) -> None:
    assert set(notebook.idle["spec"]["selector"]) == {PARKED}
    kinds = [change.type for change in notebook.services]
    assert (kinds[0], set(kinds[1:-1]), kinds[-1]) == ("ADDED", {"MODIFIED"}, "DELETED")
    assert {one.object["metadata"]["uid"] for one in notebook.services} == {notebook.idle["metadata"]["uid"]}
