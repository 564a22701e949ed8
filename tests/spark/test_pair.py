"""Two drivers on one node that both ask for 4040: no Service ever shows the other's UI."""

from __future__ import annotations

import itertools

from sandbox.spark.trace import Trace
from tests.spark.short_lives import Pair, Side


def _ports(trace: Trace) -> list[int]:
    return [context.port for context in trace.contexts]


def _led_astray(pair: Pair, side: Side, other: Side) -> list[str]:
    """Say where a Service led to a port while the other driver's UI had it; None: to this day."""
    found = []
    history = pair.changes.routed(side.service)
    ends: list[int | None] = [step.at for step in history[1:]]
    for step, until in itertools.zip_longest(history, ends):
        for context in other.trace.contexts:
            listener = context.listener
            assert listener is not None
            overlaps = (until is None or listener.seen_at < until) and (
                listener.closed_at is None or step.at < listener.closed_at
            )
            if overlaps and (pair.ip, context.port) in step.routes:
                found.append(f"{side.service} led to port {context.port} of {other.application}")
    return found


def test_both_wanted_one_port_and_each_got_its_own(pair: Pair) -> None:
    assert _ports(pair.first.trace) == [4040]
    assert _ports(pair.second.trace) == [4041, 4040], "the next context took the port that was free again"
    assert pair.first.application != pair.second.application


def test_each_service_held_its_own_port(pair: Pair) -> None:
    def led_to(side: Side) -> list[int]:
        return [port for step in pair.changes.routed(side.service) for _, port in sorted(step.routes)]

    assert led_to(pair.first) == [4040]
    assert led_to(pair.second) == [4041, 4040]
    assert pair.first.shown == pair.first.application
    assert pair.second.shown == pair.second.application


def test_at_no_time_did_a_service_show_the_others_ui(pair: Pair) -> None:
    assert _led_astray(pair, pair.first, pair.second) == []
    assert _led_astray(pair, pair.second, pair.first) == []


def test_in_the_end_nothing_is_led_to(pair: Pair) -> None:
    assert pair.changes.leads_to(pair.first.service) == set()
    assert pair.changes.leads_to(pair.second.service) == set()
    assert (pair.first.exit_code, pair.second.exit_code) == (0, 0)
