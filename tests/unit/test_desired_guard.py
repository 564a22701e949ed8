"""Which freed port is kept from other drivers, and for how long."""

from __future__ import annotations

import pytest

from agent.decide.desired import fold, guarded, initial, withdrawn
from agent.model import Closed, Draining, Fact, HookStopping, Observed, Trouble
from tests.support.make import bound, listener, ours, scan, settings

NODE = settings(host_network=True)
BLOCKED = Trouble("api", "no answer", "none needed")


def kept(*facts: Fact, **given: str) -> list[int]:
    """The inodes of the listeners whose ports are guarded after `facts`."""
    world, chosen = initial(), settings(given, host_network=True)
    for fact in facts:
        world = fold(world, fact, chosen)
    return [one.inode for one in guarded(world, chosen)]


@pytest.mark.parametrize(
    ("facts", "inodes"),
    [
        pytest.param([scan(4040)], [], id="never served, never guarded"),
        pytest.param([bound(4040)], [], id="it still listens itself"),
        pytest.param([bound(4040), Closed(4040)], [4040], id="freed: at once, in the same fold"),
        pytest.param([bound(4040), scan()], [4040], id="freed, seen by a scan"),
        pytest.param([bound(4040), HookStopping(7)], [], id="about to stop, not closed yet"),
        pytest.param([bound(4040), HookStopping(7), Closed(4040)], [4040], id="stopped"),
        pytest.param([bound(4040), Draining("x"), Closed(4040)], [4040], id="also while draining"),
        pytest.param(
            [bound(4040), Closed(4040), Observed(1, routed=True)],
            [4040],
            id="the answer to an older number says nothing",
        ),
        pytest.param(
            [bound(4040), Closed(4040), Observed(2, routed=True)], [4040], id="the slices still hold us"
        ),
        pytest.param(
            [bound(4040), Closed(4040), Observed(2, routed=True, blocked=BLOCKED)],
            [4040],
            id="the API is away: unknown counts as routed",
        ),
        pytest.param([bound(4040), Closed(4040), Observed(2, routed=False)], [], id="gone: let go"),
        pytest.param(
            [bound(4040), HookStopping(7), Observed(2, routed=False), Closed(4040)],
            [4040],
            id="gone before it closed: proxies lag behind the slices, so the port is taken as it is freed",
        ),
        pytest.param(
            [bound(4040), HookStopping(7), Observed(2, routed=False), Closed(4040), scan()],
            [],
            id="and let go, for as long as SETTLE says, with the next fact",
        ),
        pytest.param(
            [bound(4040), Closed(4040), bound(4041)],
            [4040],
            id="the next context is up, but the Service may still hold the former port",
        ),
        pytest.param(
            [bound(4040), Closed(4040), bound(4041), Observed(3, routed=True, blocked=BLOCKED)],
            [4040],
            id="the next context is up, and the API is away",
        ),
        pytest.param(
            [bound(4040), Closed(4040), bound(4041), Observed(3, routed=True, elsewhere=True)],
            [4040],
            id="the next context's port is written, endpoints still lead to the former one",
        ),
        pytest.param(
            [bound(4040), Closed(4040), bound(4041), Observed(3, routed=True)],
            [],
            id="the Service is known to hold the next context's port",
        ),
        pytest.param(
            [bound(4040), Closed(4040), bound(4041), Observed(3, routed=True), Closed(4041)],
            [4041],
            id="then that one is guarded",
        ),
        pytest.param(
            [bound(4040, inode=1), Closed(4040), bound(4040, inode=2)],
            [],
            id="our own driver has the same port again",
        ),
        pytest.param(
            [bound(4040), bound(4041, pid=8), Closed(4040), Closed(4041)],
            [4040, 4041],
            id="both freed, and the Service may hold either",
        ),
        pytest.param(
            [bound(4040), bound(4041, pid=8), Closed(4040), Closed(4041), Observed(3, routed=False)],
            [],
            id="both freed, then gone: let go",
        ),
        pytest.param(
            [bound(4040), bound(4041, pid=8), Observed(2, routed=True), Closed(4040)],
            [4040],
            id="freed after another took its place: proxies lag behind the slices",
        ),
        pytest.param(
            [bound(4040), bound(4041, pid=8), Observed(2, routed=True), Closed(4040), scan(4041)],
            [],
            id="and let go, for as long as SETTLE says, with the next fact",
        ),
        pytest.param(
            [fact for port in range(4040, 4046) for fact in (bound(port), Closed(port))],
            [4040, 4044, 4045],
            id="one context after another in an outage: what is known to be held, and the last two",
        ),
    ],
)
def test_the_guarded_ports(facts: list[Fact], inodes: list[int]) -> None:
    assert kept(*facts) == inodes


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param([bound(4040), Observed(1, routed=True), HookStopping(7)], False, id="not written yet"),
        pytest.param(
            [bound(4040), HookStopping(7), Observed(2, routed=True)], False, id="the slices still hold us"
        ),
        pytest.param([bound(4040), HookStopping(7), Observed(2, routed=False)], True, id="gone"),
        pytest.param([HookStopping(7), Observed(0, routed=False)], True, id="never served"),
        pytest.param(
            [bound(4041, pid=8), Observed(1, routed=True), bound(4040), Observed(2, routed=True)],
            False,
            id="its UI is the one that is served",
        ),
        pytest.param(
            [bound(4041, pid=8), bound(4040), Observed(2, routed=True), HookStopping(7)],
            False,
            id="another JVM's takes its place, not written yet",
        ),
        pytest.param(
            [bound(4041, pid=8), bound(4040), HookStopping(7), Observed(3, routed=True, blocked=BLOCKED)],
            False,
            id="another JVM's takes its place, and the API is away",
        ),
        pytest.param(
            [bound(4041, pid=8), bound(4040), HookStopping(7), Observed(3, routed=True, elsewhere=True)],
            False,
            id="another JVM's is written, endpoints still lead to its own",
        ),
        pytest.param(
            [bound(4041, pid=8), bound(4040), HookStopping(7), Observed(3, routed=True)],
            True,
            id="another JVM's has taken its place",
        ),
        pytest.param(
            [bound(4041, pid=8), bound(4040), HookStopping(7), Observed(3, routed=False, blocked=BLOCKED)],
            True,
            id="another JVM's is to take its place, and the Service is refused to us",
        ),
        pytest.param(
            [scan(4040), HookStopping(7), ours(4040), Observed(1, routed=True)],
            False,
            id="found by REST after it said so: whose it is nobody knows",
        ),
    ],
)
def test_when_stop_may_go_on(facts: list[Fact], expected: bool) -> None:
    world = initial()
    for fact in facts:
        world = fold(world, fact, settings())

    assert withdrawn(world, 7) is expected


def test_the_guard_takes_the_address_that_was_freed() -> None:
    world = fold(fold(initial(), bound(4040), NODE), Closed(4040), NODE)

    assert guarded(world, NODE) == (listener(4040),)


def test_no_guard_where_it_is_off_or_the_network_is_the_pods_own() -> None:
    facts: list[Fact] = [bound(4040), Closed(4040)]
    world = initial()
    for fact in facts:
        world = fold(world, fact, settings())

    assert kept(*facts, GUARD="off") == []
    assert guarded(world, settings()) == ()


def test_a_uis_proof_by_rest_is_guarded_as_well() -> None:
    assert kept(scan(4040), ours(4040), scan()) == [4040]
