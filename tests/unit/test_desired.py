"""From facts to what is wanted of the Service: every arbitration between sources, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from agent.decide.desired import fold, initial
from agent.model import (
    Closed,
    Draining,
    DriverEnded,
    Fact,
    HookBound,
    HookReady,
    HookState,
    HookStopping,
    Misconfigured,
    Observed,
    Scanned,
    Scheme,
    Serve,
    Taken,
    Trouble,
    World,
)
from agent.settings import Settings
from tests.support.make import APP, OTHER_APP, answered, bound, listener, ours, scan, settings, shown


@dataclass(frozen=True)
class Row:
    """One situation: facts in their order, each with what is wanted after it."""

    name: str
    steps: list[tuple[Fact, str]]
    given: dict[str, str] = field(default_factory=dict)
    host_network: bool = False
    app: str = APP


TROUBLE = Trouble("settings", "SPARK_UI_AGENT_EXPOSE is '0'", "correct it")

ROWS = [
    # --- where the UI is ---
    Row("nothing listens", [(scan(), "park:searching")]),
    Row("a listener alone is no proof", [(scan(4040), "park:searching")]),
    Row(
        "a port that nobody chose",
        [(scan(45123), "park:searching"), (ours(45123), "45123/http/rest")],
    ),
    Row(
        "the usual port is another application's, ours moved up by one",
        [
            (scan(4040, 4041), "park:searching"),
            (answered(4040, Taken.FOREIGN, app=OTHER_APP), "park:identity"),
            (ours(4041), "4041/http/rest"),
        ],
    ),
    Row(
        "the same on a shared network, where a neighbour's UI is no trouble at all",
        [
            (scan(4040, 4041), "park:searching"),
            (answered(4040, Taken.FOREIGN, app=OTHER_APP), "park:searching"),
            (ours(4041), "4041/http/rest"),
        ],
        host_network=True,
    ),
    Row(
        "our UI is off, only a neighbour's stands on the usual port",
        [(scan(4040), "park:searching"), (answered(4040, Taken.FOREIGN, app=OTHER_APP), "park:searching")],
        host_network=True,
    ),
    Row(
        "a History Server lists ours among others",
        [(scan(18080), "park:searching"), (answered(18080, Taken.MANY), "park:searching")],
    ),
    Row(
        "bound long before it answers: starting up, then an empty list, then the list",
        [
            (scan(4040), "park:searching"),
            (answered(4040, Taken.STARTING), "park:starting"),
            (answered(4040, Taken.STARTING), "park:starting"),
            (ours(4040), "4040/http/rest"),
        ],
    ),
    Row(
        "an answer about a socket that is gone by now counts for nothing",
        [(scan(4040), "park:searching"), (scan(), "park:searching"), (ours(4040), "park:searching")],
    ),
    Row(
        "an answer about the former socket at a port says nothing about the new one",
        [
            (scan(listener(4040, 1)), "park:searching"),
            (scan(listener(4040, 2)), "park:searching"),
            (ours(4040, inode=1), "park:searching"),
            (ours(4040, inode=2), "4040/http/rest"),
        ],
    ),
    Row(
        "an answer that comes late does not take a proof away",
        [
            (scan(4040), "park:searching"),
            (ours(4040), "4040/http/rest"),
            (answered(4040, Taken.SILENT), "4040/http/rest"),
            (answered(4040, Taken.STARTING), "4040/http/rest"),
        ],
    ),
    # --- the end of a UI ---
    Row(
        "the kernel tells the end, with the socket's number",
        [
            (scan(4040, 4041), "park:searching"),
            (ours(4040), "4040/http/rest"),
            (Closed(4041, 4041), "4040/http/rest"),
            (Closed(4040, 4040), "park:stopped"),
        ],
    ),
    Row(
        "the kernel tells the end of some socket at the port",
        [(scan(4040), "park:searching"), (ours(4040), "4040/http/rest"), (Closed(4040), "park:stopped")],
    ),
    Row(
        "the end of another socket at the same port is not ours",
        [
            (scan(4040), "park:searching"),
            (ours(4040), "4040/http/rest"),
            (Closed(4040, 99), "4040/http/rest"),
        ],
    ),
    Row(
        "the context stopped, the JVM runs on, something else takes the port: it is proven anew",
        [
            (scan(4040), "park:searching"),
            (ours(4040), "4040/http/rest"),
            (scan(), "park:stopped"),
            (scan(listener(4040, 2)), "park:stopped"),
            (answered(4040, Taken.NOT_SPARK, inode=2), "park:stopped"),
        ],
    ),
    Row(
        "a scan that missed the gap still sees another socket",
        [
            (scan(listener(4040, 1)), "park:searching"),
            (ours(4040, inode=1), "4040/http/rest"),
            (scan(listener(4040, 2)), "park:stopped"),
        ],
    ),
    # --- the log hook ---
    Row("the driver's log tells the port", [(bound(39001), "39001/http/hook")]),
    Row(
        "the log tells a port where nothing listens",
        [(bound(39001, listening=False), "park:uid"), (HookStopping(7), "park:searching")],
    ),
    Row(
        "the hook proves what REST had proven: the stronger proof stands",
        [(scan(4040), "park:searching"), (ours(4040), "4040/http/rest"), (bound(4040), "4040/http/hook")],
    ),
    Row(
        "REST after the hook changes nothing",
        [(bound(4040), "4040/http/hook"), (ours(4040), "4040/http/hook")],
    ),
    Row(
        "about to stop: withdrawn while it still listens, and no answer brings it back",
        [
            (bound(4040), "4040/http/hook"),
            (HookStopping(7), "park:stopped"),
            (scan(4040), "park:stopped"),
            (ours(4040), "park:stopped"),
            (scan(), "park:stopped"),
        ],
    ),
    Row(
        "one JVM of the Pod stops, the other's UI stays",
        [
            (bound(4040, pid=7), "4040/http/hook"),
            (bound(4041, pid=8), "4041/http/hook"),
            (HookStopping(7), "4041/http/hook"),
            (HookStopping(8), "park:stopped"),
        ],
    ),
    Row(
        "a JVM without a UI stops: nobody else's goes",
        [(bound(4040, pid=7), "4040/http/hook"), (HookStopping(8), "4040/http/hook")],
    ),
    Row(
        "stopping, for a UI that a restarted agent had found by REST",
        [(scan(4040), "park:searching"), (ours(4040), "4040/http/rest"), (HookStopping(7), "park:stopped")],
    ),
    Row(
        "stopping, with two UIs found by REST: not known whose, so the sockets will tell",
        [
            (scan(4040, 4041), "park:searching"),
            (ours(4040), "4040/http/rest"),
            (ours(4041), "4041/http/rest"),
            (HookStopping(7), "4041/http/rest"),
            (Closed(4041), "4040/http/rest"),
        ],
    ),
    Row(
        "stopping, for a filtered UI taken by its socket",
        [
            (scan(4040), "park:searching"),
            (answered(4040, Taken.FILTERED), "4040/http/socket"),
            (HookStopping(7), "park:filtered"),
        ],
        given={"FILTERED_UI": "socket"},
    ),
    Row(
        "the next context on the same port, one after another",
        [
            (bound(4040, inode=1), "4040/http/hook"),
            (HookStopping(7), "park:stopped"),
            (scan(), "park:stopped"),
            (bound(4040, inode=2), "4040/http/hook"),
            (HookStopping(7), "park:stopped"),
        ],
    ),
    Row(
        "a hook's word for a foreign port is corrected by REST on a shared network",
        [
            (bound(4040), "4040/http/hook"),
            (answered(4040, Taken.FOREIGN, app=OTHER_APP), "park:stopped"),
        ],
        host_network=True,
    ),
    Row(
        "in a network of its own the hook's word stands",
        [
            (bound(4040), "4040/http/hook"),
            (answered(4040, Taken.FOREIGN, app="local-1"), "4040/http/hook"),
        ],
    ),
    # --- on the loopback ---
    Row(
        "the hook tells a UI that no Service can reach",
        [
            (HookBound(7, 45123, Scheme.HTTP, listener(45123, address="127.0.0.1")), "park:loopback"),
            (scan(), "park:searching"),
        ],
    ),
    Row(
        "a usual port of the driver's uid on the loopback",
        [
            (scan(listener(4040, address="127.0.0.1")), "park:loopback"),
            (scan(listener(4040, address="127.0.0.1"), 4041), "park:loopback"),
            (answered(4041, Taken.STARTING), "park:starting"),
            (ours(4041), "4041/http/rest"),
        ],
    ),
    Row(
        "other loopback listeners are no UI",
        [
            (scan(listener(40001, address="127.0.0.1")), "park:searching"),
            (scan(listener(4040, address="127.0.0.1", uid=0)), "park:searching"),
            (scan(replace(listener(4040, address="127.0.0.1"), backlog=50)), "park:searching"),
        ],
    ),
    Row(
        "on a shared network a loopback listener may be any driver's",
        [(scan(listener(4040, address="127.0.0.1")), "park:searching")],
        host_network=True,
    ),
    # --- TLS ---
    Row(
        "TLS on: the port that serves beats the one that redirects, in the order of their lines",
        [(bound(4440, tls=True), "4440/https/hook"), (bound(4040), "4440/https/hook")],
    ),
    Row(
        "TLS on, the other order",
        [(bound(4040), "4040/http/hook"), (bound(4440, tls=True), "4440/https/hook")],
    ),
    Row(
        "TLS on, the secure port moved by a collision of its own: nothing is computed",
        [(bound(4441, tls=True), "4441/https/hook"), (bound(4040), "4441/https/hook")],
    ),
    Row(
        "a plain port that only redirects is never served",
        [(scan(4040), "park:searching"), (answered(4040, Taken.REDIRECTOR), "park:searching")],
    ),
    Row(
        "no plain port at all",
        [(scan(4440), "park:searching"), (ours(4440, tls=True), "4440/https/rest")],
    ),
    Row(
        "two JVMs, one with TLS: its plain port alone is left out",
        [
            (bound(4440, tls=True, pid=7), "4440/https/hook"),
            (bound(4040, pid=7), "4440/https/hook"),
            (bound(4041, pid=8), "4041/http/hook"),
        ],
    ),
    Row(
        "https asked for, http there",
        [(scan(4040), "park:searching"), (ours(4040), "park:scheme")],
        given={"SCHEME": "https"},
    ),
    Row(
        "http asked for, but with TLS on the plain port only redirects",
        [(bound(4440, tls=True), "park:scheme"), (bound(4040), "park:scheme")],
        given={"SCHEME": "http"},
    ),
    Row(
        "https asked for and there",
        [(bound(4440, tls=True), "4440/https/hook")],
        given={"SCHEME": "https"},
    ),
    Row(
        "https asked for, a filtered UI speaks http",
        [(scan(4040), "park:searching"), (answered(4040, Taken.FILTERED), "park:scheme")],
        given={"SCHEME": "https", "FILTERED_UI": "socket"},
    ),
    # --- a UI behind a filter ---
    Row(
        "401 or 403 for everything, no policy: blocked",
        [(scan(4040), "park:searching"), (answered(4040, Taken.FILTERED), "park:filtered")],
    ),
    Row(
        "the socket as proof, opted in",
        [(scan(4040), "park:searching"), (answered(4040, Taken.FILTERED), "4040/http/socket")],
        given={"FILTERED_UI": "socket"},
    ),
    Row(
        "the socket as proof, opted in, on a shared network: refused",
        [(scan(4040), "park:searching"), (answered(4040, Taken.FILTERED), "park:filtered")],
        given={"FILTERED_UI": "socket"},
        host_network=True,
    ),
    Row(
        "two filtered UIs: neither",
        [
            (scan(4040, 4041), "park:searching"),
            (answered(4040, Taken.FILTERED), "4040/http/socket"),
            (answered(4041, Taken.FILTERED), "park:filtered"),
        ],
        given={"FILTERED_UI": "socket"},
    ),
    Row(
        "a proven one beats a filtered one",
        [
            (scan(4040, 4041), "park:searching"),
            (answered(4040, Taken.FILTERED), "4040/http/socket"),
            (ours(4041), "4041/http/rest"),
        ],
        given={"FILTERED_UI": "socket"},
    ),
    Row("filtered, but the hook speaks", [(bound(4040), "4040/http/hook")]),
    # --- several contexts ---
    Row(
        "newest of two, by order of proof; when it stops, the other",
        [
            (scan(4040, 4041), "park:searching"),
            (ours(4040), "4040/http/rest"),
            (ours(4041), "4041/http/rest"),
            (scan(4040), "4040/http/rest"),
        ],
    ),
    Row(
        "newest by its start, where both tell it",
        [
            (scan(4040, 4041), "park:searching"),
            (ours(4041, started=2000), "4041/http/rest"),
            (ours(4040, started=1000), "4041/http/rest"),
        ],
    ),
    Row(
        "the first stays, however many come",
        [
            (scan(4040, 4041), "park:searching"),
            (ours(4040), "4040/http/rest"),
            (ours(4041), "4040/http/rest"),
            (scan(4041), "4041/http/rest"),
        ],
        given={"CONTEXTS": "first"},
    ),
    Row(
        "the first by its start",
        [
            (scan(4040, 4041), "park:searching"),
            (ours(4041, started=2000), "4041/http/rest"),
            (ours(4040, started=1000), "4040/http/rest"),
        ],
        given={"CONTEXTS": "first"},
    ),
    Row(
        "only one is allowed",
        [
            (scan(4040, 4041), "park:searching"),
            (ours(4040), "4040/http/rest"),
            (ours(4041), "park:contexts"),
            (Closed(4041), "4040/http/rest"),
        ],
        given={"CONTEXTS": "only"},
    ),
    # --- identity on a shared network ---
    Row(
        "two UIs on the node show our id: neither",
        [
            (scan(4040, 4041), "park:searching"),
            (ours(4040), "4040/http/rest"),
            (ours(4041), "park:ambiguous"),
            (Closed(4040), "4041/http/rest"),
        ],
        host_network=True,
    ),
    Row(
        "two UIs on the node show our id, one of them over TLS: neither",
        [
            (scan(4040, 4440), "park:searching"),
            (ours(4040), "4040/http/rest"),
            (ours(4440, tls=True), "park:ambiguous"),
        ],
        host_network=True,
    ),
    Row(
        "two UIs on the node show our id, but the hook's secret tells ours, whichever came last",
        [
            (scan(4040, 4041), "park:searching"),
            (bound(4041), "4041/http/hook"),
            (ours(4040), "4041/http/hook"),
        ],
        host_network=True,
    ),
    Row(
        "no id and no hook: nothing can be proven",
        [(scan(4040), "park:identity"), (answered(4040, Taken.FOREIGN, app=OTHER_APP), "park:identity")],
        app="",
    ),
    Row(
        "no id, but the hook is on",
        [(scan(4040), "park:searching"), (bound(4040), "4040/http/hook")],
        app="",
        given={"HOOK": "on"},
    ),
    # --- ends ---
    Row(
        "a signal parks, and nothing is served again",
        [
            (bound(4040), "4040/http/hook"),
            (Draining("SIGTERM"), "park:draining"),
            (bound(4041), "park:draining"),
            (ours(4041), "park:draining"),
        ],
    ),
    Row(
        "the driver's end releases, also after a signal, and nothing is served again",
        [
            (bound(4040), "4040/http/hook"),
            (Draining("SIGTERM"), "park:draining"),
            (DriverEnded("Completed"), "release"),
            (bound(4041), "release"),
            (Draining("SIGINT"), "release"),
        ],
    ),
    Row(
        "bad settings park, whatever is found",
        [(Misconfigured(TROUBLE), "park:settings"), (bound(4040), "park:settings")],
    ),
]


def after(row: Row) -> tuple[list[str], World, Settings]:
    given = settings(row.given, host_network=row.host_network, app=row.app)
    world, found = initial(), []
    for fact, _ in row.steps:
        world = fold(world, fact, given)
        found.append(shown(world.intent.desired))
    return found, world, given


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_wanted(row: Row) -> None:
    found, _, _ = after(row)

    assert found == [want for _, want in row.steps]


def test_each_row_has_a_name_of_its_own() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_at_first_nothing_is_served() -> None:
    assert shown(initial().intent.desired) == "park:searching"
    assert initial().intent.generation == 0


@pytest.mark.parametrize(
    ("facts", "generations"),
    [
        pytest.param([scan(), scan(4040), scan(4040)], [0, 0, 0], id="no change of mind, no new number"),
        pytest.param([bound(4040), bound(4040)], [1, 1], id="said twice"),
        pytest.param([bound(4040), HookStopping(7), HookStopping(7)], [1, 2, 2], id="stopped, said twice"),
        pytest.param([Draining("a"), Draining("b")], [1, 1], id="the first reason to drain stands"),
        pytest.param([DriverEnded("a"), DriverEnded("b")], [1, 1], id="the first reason for the end stands"),
        pytest.param(
            [bound(4040), Closed(4040), bound(4040, inode=2)], [1, 2, 3], id="the same port, another time"
        ),
    ],
)
def test_a_new_number_for_each_change_and_for_nothing_else(facts: list[Fact], generations: list[int]) -> None:
    world, found = initial(), []
    for fact in facts:
        world = fold(world, fact, settings())
        found.append(world.intent.generation)

    assert found == generations


@pytest.mark.parametrize(
    ("facts", "hook"),
    [
        ([], HookState.OFF),
        ([HookReady(on=False)], HookState.OFF),
        ([HookReady()], HookState.WAITING),
        ([HookReady(), bound(4040)], HookState.CONNECTED),
        ([HookReady(), bound(4040, listening=False)], HookState.CONNECTED),
        ([HookReady(), HookStopping(3)], HookState.CONNECTED),
        ([HookReady(), bound(4040), HookReady()], HookState.CONNECTED),
        ([HookReady(), scan(4040), ours(4040)], HookState.ABSENT),
        ([HookReady(), scan(4040), ours(4040), bound(4041)], HookState.CONNECTED),
        ([HookReady(), scan(4040), answered(4040, Taken.FOREIGN)], HookState.WAITING),
        ([scan(4040), ours(4040)], HookState.OFF),
    ],
)
def test_what_is_known_of_the_hook(facts: list[Fact], hook: HookState) -> None:
    world = initial()
    for fact in facts:
        world = fold(world, fact, settings())

    assert world.hook is hook


def test_the_application_is_the_one_that_the_ui_shows_else_the_pods() -> None:
    world = initial()
    for fact in (scan(4040), answered(4040, Taken.OURS, app="shown-by-the-ui")):
        world = fold(world, fact, settings())
    by_hook = fold(initial(), bound(4041), settings())

    assert isinstance(world.intent.desired, Serve)
    assert world.intent.desired.application == "shown-by-the-ui"
    assert isinstance(by_hook.intent.desired, Serve)
    assert by_hook.intent.desired.application == APP


def test_what_was_observed_for_an_older_number_does_not_replace_the_newer() -> None:
    world = fold(initial(), Observed(3, routed=False), settings())

    assert fold(world, Observed(2, routed=True), settings()).observed == Observed(3, routed=False)
    assert fold(world, Observed(3, routed=True), settings()).observed == Observed(3, routed=True)


def test_a_scan_from_proc_says_so() -> None:
    world = fold(initial(), Scanned(frozenset(), degraded=True), settings())

    assert world.degraded
    assert world.scanned
    assert not fold(world, scan(), settings()).degraded


def test_a_verdict_is_forgotten_with_its_socket() -> None:
    world = initial()
    for fact in (scan(4040), answered(4040, Taken.FILTERED), scan(listener(4040, 2))):
        world = fold(world, fact, settings())

    assert world.verdicts == {}
    assert shown(world.intent.desired) == "park:searching"
