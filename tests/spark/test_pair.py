"""Two drivers on one node that both ask for 4040: no Service ever shows the other's UI."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from sandbox.changes import Routed
from sandbox.spark.sockdiag import Socket
from sandbox.spark.trace import Listener, Trace
from tests.spark.short_lives import Pair, Side


def _ports(trace: Trace) -> list[int]:
    return [context.port for context in trace.contexts]


def _uis(trace: Trace) -> list[Listener]:
    return [context.listener for context in trace.contexts if context.listener is not None]


def _led_astray(history: Sequence[Routed], others: Iterable[Listener]) -> list[int]:
    """Return the ports that a Service led to while another driver's UI had them."""
    ends: list[int | None] = [*(step.at for step in history[1:]), None]
    return [
        port
        for (step, until), other in itertools.product(zip(history, ends, strict=True), others)
        for _, port in step.routes
        if port == other.socket.port
        and (until is None or other.seen_at < until)
        and (other.closed_at is None or step.at < other.closed_at)
    ]


def test_being_led_astray_is_seen() -> None:
    socket = Socket(2, "::", 4040, 0, 185, 1, 1, "a")
    history = [
        Routed(10, frozenset({("10.98.0.1", 4040)})),
        Routed(20, frozenset()),
        Routed(30, frozenset({("10.98.0.1", 4041)})),
    ]
    assert _led_astray(history, [Listener(socket, 5, 9)]) == []
    assert _led_astray(history, [Listener(socket, 5, 11)]) == [4040]
    assert _led_astray(history, [Listener(socket, 19, None)]) == [4040]
    assert _led_astray(history, [Listener(socket, 20, None)]) == []
    assert _led_astray(history[:1], [Listener(socket, 100, None)]) == [4040]


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
    for side, other in ((pair.first, pair.second), (pair.second, pair.first)):
        assert len(_uis(other.trace)) == len(other.trace.contexts)
        assert _led_astray(pair.changes.routed(side.service), _uis(other.trace)) == []


def test_in_the_end_nothing_is_led_to(pair: Pair) -> None:
    assert pair.changes.leads_to(pair.first.service) == set()
    assert pair.changes.leads_to(pair.second.service) == set()
    assert (pair.first.exit_code, pair.second.exit_code) == (0, 0)
