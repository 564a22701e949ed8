"""Two drivers on one node that both ask for 4040: a client of both Services never gets the other's page."""

from __future__ import annotations

from tests.e2e.pair import Pair


def test_each_service_led_to_its_own_port(pair: Pair) -> None:
    assert pair.first.ports() == [4040]
    assert pair.second.ports() == [4041, 4040], "the next context took the port that the other one had had"


def test_a_client_of_both_never_gets_the_others_page(pair: Pair) -> None:
    assert pair.first.shown() == {pair.first.name}
    assert pair.second.shown() == {pair.second.name}


def test_the_client_asked_throughout(pair: Pair) -> None:
    parked = pair.first.routed[-1].at
    assert any(one.at > parked for one in pair.first.asked)
    assert pair.second.asked[-1].at > pair.second.routed[-1].at
    assert pair.first.asked[-1].at > pair.second.routed[-1].at


def test_both_jobs_end_well(pair: Pair) -> None:
    assert [side.ending.phase for side in (pair.first, pair.second)] == ["Succeeded", "Succeeded"]
