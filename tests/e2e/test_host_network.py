"""Two drivers on one node that both ask for 4040: a client of both Services never gets the other's page."""

from __future__ import annotations

from tests.e2e.pages import applications
from tests.e2e.pair import Pair


def test_each_service_led_to_its_own_port(pair: Pair) -> None:
    assert pair.first.ports() == [4040]
    assert pair.second.ports() == [4041, 4040], "the next context took the port that the other one had had"


def test_a_client_of_both_never_gets_the_others_page(pair: Pair) -> None:
    assert pair.first.shown() == {pair.first.name}
    assert pair.second.shown() == {pair.second.name}
    assert [pair.first.strays(), pair.second.strays()] == [[], []]


def test_a_client_of_the_first_gets_no_page_once_the_second_has_its_port(pair: Pair) -> None:
    assert [one for one in pair.first.asked if one.ended > pair.moved and one.page is not None] == []
    # when a UI that starts up would have answered it
    listed = next(
        one.ended for one in pair.second.asked if one.at > pair.moved and one.page and applications(one.page)
    )
    assert any(pair.moved < one.at < listed for one in pair.first.asked)


def test_the_client_asked_throughout(pair: Pair) -> None:
    parked = pair.first.routed[-1].at
    assert any(one.at > parked for one in pair.first.asked)
    assert pair.second.asked[-1].at > pair.second.routed[-1].at
    assert pair.first.asked[-1].at > pair.second.routed[-1].at


def test_both_jobs_end_well(pair: Pair) -> None:
    assert [side.ending.phase for side in (pair.first, pair.second)] == ["Succeeded", "Succeeded"]
