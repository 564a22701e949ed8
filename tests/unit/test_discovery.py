"""What `discover` says of each listener, and of what would be published."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.decide import identify
from agent.decide.desired import fold, initial
from agent.model import (
    Answered,
    HookBound,
    HookReady,
    HookStopping,
    Listener,
    Scanned,
    Scheme,
    Taken,
    Verdict,
    World,
)
from agent.settings import load
from agent.tell.discovery import listing
from tests.unit.telling import ENV

SETTINGS = load(ENV, own_uid=185)
UI = Listener(port=40123, address="::", uid=185, inode=1, backlog=1)
RPC = Listener(port=7078, address="10.1.0.1", uid=185, inode=2, backlog=4096)
PY4J = Listener(port=35001, address="127.0.0.1", uid=185, inode=3, backlog=50)
FOREIGN_UID = Listener(port=8080, address="::", uid=1000, inode=4, backlog=1)
OWN = Listener(port=4900, address="0.0.0.0", uid=185, inode=5, backlog=64)
CONNECT = Listener(port=15002, address="::", uid=185, inode=6, backlog=16)
ALL = frozenset({UI, RPC, PY4J, FOREIGN_UID, OWN, CONNECT})


def world(*facts: Answered | HookBound | HookReady | HookStopping, degraded: bool = False) -> World:
    found = fold(initial(), Scanned(ALL, degraded), SETTINGS)
    for fact in facts:
        found = fold(found, fact, SETTINGS)
    return found


def entries(known: World) -> dict[object, tuple[object, object]]:
    listed = listing(known, SETTINGS, frozenset({OWN.inode}))["listeners"]
    assert isinstance(listed, list)
    return {entry["port"]: (entry["taken"], entry["why"]) for entry in listed}


def test_every_listener_is_shown_in_order_of_ports_with_the_reason() -> None:
    assert list(entries(world()).items()) == [
        (4900, ("agent", "this agent's own")),
        (7078, ("passed-over", "its listen backlog is 4096, a Spark UI's is 1 to 16")),
        (8080, ("passed-over", "its uid is 1000, the driver's is 185 (SPARK_UI_AGENT_DRIVER_UID)")),
        (15002, ("passed-over", "a port known for something else, or an address that is not this Pod's")),
        (35001, ("passed-over", "listens on loopback only, where no Service leads")),
        (40123, ("possible", "looks like a Spark UI, not asked yet")),
    ]


def test_passed_over_is_what_the_search_would_not_ask() -> None:
    asked = {question.listener.port for question in identify.candidates(world(), SETTINGS)}
    assert asked == {port for port, (taken, _) in entries(world()).items() if taken == "possible"}


def test_without_backlogs_only_usual_ports() -> None:
    found = entries(world(degraded=True))
    assert found[40123] == (
        "passed-over",
        "not one of Spark's usual ports, and the kernel does not tell listen backlogs here",
    )
    assert listing(world(degraded=True), SETTINGS)["degraded"] is True


@pytest.mark.parametrize("taken", [Taken.FOREIGN, Taken.FILTERED, Taken.STARTING])
def test_an_answer_is_shown(taken: Taken) -> None:
    found = entries(world(Answered(UI, Scheme.HTTP, Verdict(taken, "what it said"))))
    assert found[40123] == (taken.value, "what it said")


def test_the_proven_one_is_what_would_be_published() -> None:
    known = world(Answered(UI, Scheme.HTTP, Verdict(Taken.OURS, "shows application spark-aaa", "spark-aaa")))
    assert entries(known)[40123] == ("ours", "this driver's UI (http), proven by rest")
    assert listing(known, SETTINGS)["publish"] == {
        "port": 40123,
        "scheme": "http",
        "application": "spark-aaa",
        "proof": "rest",
    }


def test_nothing_to_publish_says_why() -> None:
    publish = listing(world(), SETTINGS)["publish"]
    assert isinstance(publish, dict)
    assert (publish["port"], publish["reason"]) == (None, "searching")
    assert publish["found"]
    assert publish["remedy"]


def test_one_that_closes() -> None:
    known = world(HookReady(), HookBound(7, 40123, Scheme.HTTP, UI), HookStopping(7))
    assert entries(known)[40123] == ("stopping", "its driver said that it closes this UI")


def test_the_entry_holds_what_the_kernel_told() -> None:
    only = fold(initial(), Scanned(frozenset({replace(UI, backlog=None)})), SETTINGS)
    assert listing(only, SETTINGS)["listeners"] == [
        {
            "port": 40123,
            "address": "::",
            "uid": 185,
            "backlog": None,
            "taken": "passed-over",
            "why": "not one of Spark's usual ports, and the kernel does not tell listen backlogs here",
        }
    ]
