"""The checker of a capture: what it lets pass, and what it does not."""

from __future__ import annotations

import pytest

from sandbox.capture import Connection
from sandbox.spark.contacts import FEW, complaints
from sandbox.spark.trace import Context, Trace

STRANGER, DRIVER, API = "10.98.0.3", "127.0.0.1", 6443
TRACE = Trace(
    contexts=[
        Context(
            application="spark-1",
            url="http://10.98.0.1:4040",
            jvm=1,
            python=2,
            rpc=7078,
            block_manager=7079,
            py4j=40001,
            accumulator=40002,
            ready_at=0,
        )
    ]
)


def _connection(port: int, at: int, until: int | None, source: str = STRANGER) -> Connection:
    return Connection(source, 50000 + at, "10.98.0.1", port, opened_at=at, closed_at=until)


def _judged(*connections: Connection) -> list[str]:
    return complaints(connections, TRACE, {STRANGER}, own={API})


def test_one_question_at_a_time_to_the_ui_and_the_way_to_the_api_are_harmless() -> None:
    assert _judged(_connection(4040, 1, 2), _connection(4040, 3, 4), _connection(API, 1, None)) == []


@pytest.mark.parametrize(
    ("port", "name"),
    [(7078, "rpc"), (7079, "block_manager"), (40001, "py4j"), (40002, "accumulator"), (9, "unknown")],
)
def test_any_other_port_is_named(port: int, name: str) -> None:
    [complaint] = _judged(_connection(4040, 1, 2), _connection(port, 3, 4))
    assert f"port {port} ({name})" in complaint


def test_the_drivers_own_connections_are_its_own_business() -> None:
    assert _judged(_connection(7078, 1, 2, DRIVER)) == []


def test_two_at_once_are_too_many() -> None:
    [complaint] = _judged(_connection(4040, 1, None), _connection(4040, 3, 4))
    assert "2 connections at once to the UI on port 4040" in complaint


def test_more_than_few_are_too_many() -> None:
    few = [_connection(4040, 2 * at, 2 * at + 1) for at in range(FEW)]
    assert _judged(*few) == []
    [complaint] = _judged(*few, _connection(4040, 1000, 1001))
    assert f"{FEW + 1} times" in complaint
