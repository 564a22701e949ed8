"""The driver does not notice the agent: same log, same result, no connection but a careful few to the UI."""

from __future__ import annotations

from sandbox.spark.contacts import complaints
from sandbox.spark.likeness import differences
from tests.spark.short_lives import Marked, Unheard
from tests.spark.whole_life import Record, Work


def test_the_drivers_log_is_the_same_with_the_agent_and_without(record: Record, alone: Work) -> None:
    assert len(alone.trace.lines()) > 30
    for stream in ("stderr", "stdout"):
        assert differences(record.trace.lines(stream), alone.trace.lines(stream)) == []
    assert record.work.used.result == alone.used.result
    assert record.work.exit_code == alone.exit_code


def test_only_the_ui_was_ever_connected_to_and_seldom(marked: Marked) -> None:
    assert marked.published_port == marked.trace.ui_port
    assert complaints(marked.before, marked.trace, marked.sources, own={marked.api}) == []
    asked = [
        one
        for one in marked.before
        if one.port == marked.trace.ui_port and one.source in marked.sources and one.sent
    ]
    assert asked, "the capture tells the agent's connections apart: it did ask the UI"
    assert all(one.closed_at is not None for one in asked)


def test_a_planted_probe_of_rpc_is_found(marked: Marked) -> None:
    [complaint] = complaints(marked.after, marked.trace, marked.sources, own={marked.api})
    assert f"port {marked.trace.context.rpc} (rpc)" in complaint


def test_an_api_server_that_never_answers_does_not_touch_the_job(unheard: Unheard, alone_too: Work) -> None:
    assert unheard.asked > 1
    assert unheard.result == alone_too.used.result == 499500
    assert (unheard.driver_exit, unheard.exit_code) == (0, 0)
    for stream in ("stderr", "stdout"):
        assert differences(unheard.trace.lines(stream), alone_too.trace.lines(stream)) == []
    assert unheard.log[-1].event == "left undone"
