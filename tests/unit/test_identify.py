"""Which listeners are asked, and in which order."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.desired import fold, initial
from agent.decide.identify import FINAL, candidates
from agent.model import (
    HookBound,
    HookReady,
    Listener,
    Misconfigured,
    Proof,
    Question,
    Scanned,
    Scheme,
    Taken,
    Trouble,
    Ui,
    Verdict,
    World,
)
from agent.settings import Settings

from .senses import settings

UID = 185
POD = settings(driver_uid=str(UID), POD_IP="10.1.2.3", HOST_IP="192.168.0.9")
NODE = settings(driver_uid=str(UID), POD_IP="192.168.0.9", HOST_IP="192.168.0.9")
_inodes = itertools.count(1000)


def listener(
    port: int, address: str = "::", *, uid: int = UID, backlog: int | None = 1, v6only: bool = False
) -> Listener:
    return Listener(port, address, uid, next(_inodes), backlog, v6only)


def world(*found: Listener, degraded: bool = False) -> World:
    return fold(initial(), Scanned(frozenset(found), degraded), POD)


def known(before: World, verdicts: dict[Listener, tuple[Scheme, Taken]]) -> World:
    return replace(
        before,
        verdicts={one.inode: (scheme, Verdict(taken, "")) for one, (scheme, taken) in verdicts.items()},
    )


def ports(now: World, chosen: Settings = POD) -> list[int]:
    return [question.listener.port for question in candidates(now, chosen)]


def test_what_may_be_a_ui_is_asked_plain_first() -> None:
    ui = listener(45123)

    assert candidates(world(ui), POD) == [Question(ui, Scheme.HTTP)]


@pytest.mark.parametrize(
    "other",
    [
        listener(4040, uid=0),
        listener(4040, "127.0.0.1"),
        listener(4040, "::1"),
        listener(7078, "10.1.2.3", backlog=4096),
        listener(40000, "10.1.2.3", backlog=4096),
        listener(25333, "0.0.0.0", backlog=50),
        listener(40000, backlog=17),
        listener(40000, backlog=0),
        listener(7078),
        listener(7079),
        listener(15002),
        listener(5005),
        listener(4900),
        listener(40000, "10.9.9.9"),
        listener(40000, "::", v6only=True),
    ],
    ids=lambda other: f"{other.address}-{other.port}-uid{other.uid}-backlog{other.backlog}",
)
def test_what_can_be_no_ui_is_never_asked(other: Listener) -> None:
    ui = listener(4041)

    assert ports(world(other, ui)) == [4041]


def test_a_listener_on_an_address_of_the_pod_is_asked_there() -> None:
    v6 = settings(driver_uid=str(UID), POD_IP="10.1.2.3", POD_IPS="10.1.2.3,fd00::1", HOST_IP="192.168.0.9")

    assert ports(world(listener(45123, "10.1.2.3", backlog=8))) == [45123]
    assert ports(world(listener(45123, "0.0.0.0"))) == [45123]
    assert ports(world(listener(45123, "fd00::1", backlog=8)), v6) == [45123]
    assert ports(world(listener(45123, "::", v6only=True)), v6) == [45123]


def test_with_no_address_known_every_outside_address_may_be_the_pods() -> None:
    blind = settings(driver_uid=str(UID))

    assert ports(world(listener(45123, "10.9.9.9"), listener(45124, "127.0.0.1")), blind) == [45123]


def test_an_address_that_is_none_hides_nothing() -> None:
    odd = settings(driver_uid=str(UID), POD_IP="10.1.2.3", POD_IPS="10.1.2.3,nonsense", HOST_IP="192.168.0.9")

    assert ports(world(listener(45123)), odd) == [45123]


def test_the_usual_ports_come_first_and_then_the_newest() -> None:
    made = [listener(port) for port in (30000, 4041, 45123, 4440, 4057)]

    assert ports(world(*made)) == [4440, 4041, 4057, 45123, 30000]


def test_without_backlogs_only_the_usual_ports_are_asked() -> None:
    made = [listener(port, backlog=None) for port in (4040, 4056, 4057, 4440, 4456, 4457, 45123)]

    assert sorted(ports(world(*made, degraded=True))) == [4040, 4056, 4440, 4456]


def test_a_history_server_is_left_alone_on_a_shared_node_only() -> None:
    made = [listener(18080), listener(18480)]

    assert ports(world(*made), NODE) == []
    assert sorted(ports(world(*made))) == [18080, 18480]


def test_our_own_listeners_are_not_asked() -> None:
    ours, ui = listener(40001), listener(40002)

    questions = candidates(world(ours, ui), POD, frozenset({ours.inode}))

    assert [question.listener for question in questions] == [ui]


@pytest.mark.parametrize("taken", list(Taken))
def test_a_final_verdict_ends_the_questions(taken: Taken) -> None:
    ui = listener(4040)

    asked = candidates(known(world(ui), {ui: (Scheme.HTTP, taken)}), POD)

    if taken in FINAL:
        assert asked == []
    else:
        assert asked == [Question(ui, Scheme.HTTPS if taken is Taken.SPEAKS_TLS else Scheme.HTTP)]


def test_what_may_be_asked_again() -> None:
    assert set(Taken) - FINAL == {
        Taken.SPEAKS_TLS,
        Taken.STARTING,
        Taken.SILENT,
        Taken.FILTERED,
        Taken.CLOSED,
    }


def test_what_speaks_tls_is_asked_next_and_from_then_on_over_tls() -> None:
    tls, plain = listener(45123), listener(4040)
    found = world(tls, plain)

    after_alert = candidates(known(found, {tls: (Scheme.HTTP, Taken.SPEAKS_TLS)}), POD)
    assert after_alert == [Question(tls, Scheme.HTTPS), Question(plain, Scheme.HTTP)]

    starting = candidates(known(found, {tls: (Scheme.HTTPS, Taken.STARTING)}), POD)
    assert Question(tls, Scheme.HTTPS) in starting


def test_scheme_http_asks_no_tls_and_https_still_asks_plain_first() -> None:
    ui = listener(4040)
    speaks = known(world(ui), {ui: (Scheme.HTTP, Taken.SPEAKS_TLS)})

    assert candidates(speaks, settings(driver_uid=str(UID), scheme="http")) == []
    https = settings(driver_uid=str(UID), scheme="https")
    assert candidates(world(ui), https) == [Question(ui, Scheme.HTTP)]
    assert candidates(speaks, https) == [Question(ui, Scheme.HTTPS)]


def test_after_the_end_nothing_is_asked() -> None:
    found = world(listener(4040))

    assert candidates(replace(found, ending="SIGTERM"), POD) == []
    assert candidates(replace(found, ended="the driver container exited"), POD) == []
    assert candidates(fold(found, Misconfigured(Trouble("settings", "", "")), POD), POD) == []


def test_a_ui_that_said_it_stops_is_not_asked() -> None:
    ui = listener(4040)

    assert candidates(replace(world(ui), stopping=frozenset({ui.inode})), POD) == []


def test_a_connected_hook_leaves_nothing_to_ask() -> None:
    ui, other = listener(45123), listener(4040)
    found = fold(world(ui, other), HookReady(), POD)
    assert len(candidates(found, POD)) == 2

    assert candidates(fold(found, HookBound(1, ui.port, Scheme.HTTP, ui), POD), POD) == []


def test_a_context_that_the_hook_does_not_tell_of_is_looked_for() -> None:
    """After setLogLevel("WARN") the next context's bind line is never logged."""
    first, second = listener(4040), listener(4040)
    now = fold(fold(world(first), HookReady(), POD), HookBound(1, 4040, Scheme.HTTP, first), POD)
    now = fold(now, Scanned(frozenset()), POD)
    now = fold(now, Scanned(frozenset({second})), POD)

    assert candidates(now, POD) == [Question(second, Scheme.HTTP)]


def test_on_a_shared_network_what_the_hook_named_is_confirmed_and_nothing_else_is_asked() -> None:
    ui, other = listener(45123), listener(4040)
    found = fold(world(ui, other), HookBound(1, ui.port, Scheme.HTTPS, ui), NODE)

    assert candidates(found, NODE) == [Question(ui, Scheme.HTTPS)]
    for taken in Taken:
        again = candidates(known(found, {ui: (Scheme.HTTPS, taken)}), NODE)
        assert bool(again) == (taken not in FINAL and taken is not Taken.FILTERED)


listeners = st.builds(
    Listener,
    port=st.one_of(st.integers(1, 65535), st.sampled_from([4040, 4041, 4440, 7078, 15002, 4900, 18080])),
    address=st.sampled_from(
        ["::", "0.0.0.0", "127.0.0.1", "127.0.0.9", "::1", "10.1.2.3", "192.168.0.9", "fe80::1"]
    ),
    uid=st.sampled_from([UID, 0]),
    inode=st.integers(1, 50),
    backlog=st.one_of(st.none(), st.integers(0, 4096), st.integers(1, 16)),
    v6only=st.booleans(),
)


@given(
    st.frozensets(listeners, max_size=12),
    st.dictionaries(st.integers(1, 50), st.tuples(st.sampled_from(Scheme), st.sampled_from(Taken))),
    st.booleans(),
    st.sampled_from([POD, NODE]),
)
def test_nothing_that_could_be_hurt_is_ever_asked(
    found: frozenset[Listener], verdicts: dict[int, tuple[Scheme, Taken]], degraded: bool, chosen: Settings
) -> None:
    by_inode = {one.inode: one for one in found}
    now = world(*by_inode.values(), degraded=degraded)
    now = known(now, {by_inode[inode]: verdict for inode, verdict in verdicts.items() if inode in by_inode})

    asked = candidates(now, chosen)

    assert len({question.listener.inode for question in asked}) == len(asked)
    for question in asked:
        one = question.listener
        assert one.uid == UID
        assert not one.loopback
        assert one.port not in (7078, 7079, 15002, 5005, 4900)
        assert 1 <= (one.backlog or 1) <= 16
        assert one.inode not in now.verdicts or now.verdicts[one.inode][1].taken not in FINAL
        if question.scheme is Scheme.HTTPS:
            assert one.inode in now.verdicts


def test_a_proof_by_rest_does_not_hide_a_newer_listener() -> None:
    first, second = listener(4040), listener(4041)
    now = known(world(first, second), {first: (Scheme.HTTP, Taken.OURS)})
    now = replace(now, proven=(Ui(first, Scheme.HTTP, "spark-aaa", Proof.REST),))

    assert ports(now) == [4041]
