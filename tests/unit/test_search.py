"""The search, on real listeners and servers: who is asked, when, and how often."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent import times
from agent.model import (
    Answered,
    HookBound,
    HookReady,
    HookState,
    Listener,
    Proof,
    Scanned,
    Scheme,
    Taken,
    World,
)
from agent.sense.search import Search

from .certificates import server_context
from .senses import (
    APPLICATION,
    PATIENCE,
    Server,
    Told,
    applications,
    head,
    http,
    listening,
    raw,
    running,
    serving,
    settings,
)

ANY = "0.0.0.0"
OURS = http("200 OK", applications(APPLICATION))
FOREIGN = http("200 OK", applications("spark-bbb"))
UP = http("200 OK", b"Spark is starting up. Please wait...", "text/html;charset=utf-8")
NODE = {"POD_IP": "192.168.0.9", "HOST_IP": "192.168.0.9"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same paces, in their order, a hundred times faster."""
    for name in (
        "PROBE_AGAIN_MIN",
        "PROBE_AGAIN_MAX",
        "PROBE_SLOW",
        "PROBE_STARTING",
        "HOOK_HEAD_START",
    ):
        monkeypatch.setattr(times, name, getattr(times, name) / 100)


def searching(
    told: Told,
    ours: Callable[[], frozenset[int]] = frozenset,
    count: Callable[[str], None] = lambda _verdict: None,
) -> Search:
    search = Search(told.tell, told.view, told.settings, ours, count)
    told.listen = search.wake
    return search


def verdicts(told: Told, server: Server) -> list[Taken]:
    return [
        fact.verdict.taken
        for fact in told.facts
        if isinstance(fact, Answered) and fact.listener.port == server.port
    ]


async def test_the_ui_is_found_among_others_and_then_left_alone() -> None:
    told = Told()
    async with (
        serving(FOREIGN, host=ANY) as foreign,
        serving(OURS, host=ANY) as ui,
        serving(OURS) as loopback,
        serving(OURS, host=ANY, backlog=50) as big,
        running(searching(told).run()),
    ):
        told.scan(foreign.port, ui.port, loopback.port, big.port)
        await told.until(lambda: bool(told.world.proven))
        told.scan(foreign.port, ui.port, loopback.port, big.port)
        await _quiet()

    assert [one.listener.port for one in told.world.proven] == [ui.port]
    assert told.world.proven[0].proof is Proof.REST
    assert ui.connections == 1
    assert foreign.connections <= 1
    assert (loopback.connections, big.connections) == (0, 0)


async def _quiet() -> None:
    """Long enough for several questions, were there any to ask."""
    await asyncio.sleep(20 * times.PROBE_AGAIN_MIN)


async def test_a_starting_ui_is_asked_until_it_is_ours() -> None:
    answers = [UP, http("404 Not Found", b"<html>", "text/html"), http("200 OK", b"[ ]"), OURS]

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answers.pop(0)(reader, writer)

    told = Told()
    counted: list[str] = []
    async with serving(script, host=ANY) as ui, running(searching(told, count=counted.append).run()):
        told.scan(ui.port)
        await told.until(lambda: bool(told.world.proven))

    assert verdicts(told, ui) == [Taken.STARTING] * 3 + [Taken.OURS]
    assert counted == ["starting"] * 3 + ["ours"]
    assert ui.connections == 4


async def test_one_question_at_a_time() -> None:
    most = 0
    servers: list[Server] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal most
        most = max(most, sum(server.open for server in servers))
        await FOREIGN(reader, writer)

    told = Told()
    async with (
        serving(script, host=ANY) as one,
        serving(script, host=ANY) as two,
        serving(script, host=ANY) as three,
        running(searching(told).run()),
    ):
        servers += [one, two, three]
        told.scan(one.port, two.port, three.port)
        await told.until(lambda: len(told.world.verdicts) == 3)

    assert most == 1
    assert [server.connections for server in servers] == [1, 1, 1]


async def test_a_closed_connection_is_not_repeated() -> None:
    told = Told()
    async with serving(raw(b""), host=ANY) as other, running(searching(told).run()):
        told.scan(other.port)
        await told.until(lambda: bool(told.world.verdicts))
        await _quiet()

    assert verdicts(told, other) == [Taken.NOT_SPARK]
    assert other.connections == 1


async def test_a_filtered_ui_is_asked_a_few_times_and_then_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "PROBE_SLOW", 10 * PATIENCE)
    told = Told()
    async with (
        serving(http("403 Forbidden"), host=ANY) as ui,
        running(searching(told).run()),
    ):
        told.scan(ui.port)
        await told.until(lambda: len(told.facts) > times.PROBE_TRIES)
        await _quiet()

    assert verdicts(told, ui) == [Taken.FILTERED] * times.PROBE_TRIES
    assert ui.connections == times.PROBE_TRIES


async def test_what_starts_for_ever_is_asked_seldom_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "PROBE_SLOW", 10 * PATIENCE)
    monkeypatch.setattr(times, "PROBE_STARTING", 0.0)
    told = Told()
    async with serving(UP, host=ANY) as ui, running(searching(told).run()):
        told.scan(ui.port)
        await told.until(lambda: bool(told.world.verdicts))
        await _quiet()

    assert ui.connections == 1


@pytest.mark.parametrize(
    ("taken", "paces"),
    [
        (Taken.STARTING, [1, 2, 4, 8, 16, 20, 20]),
        (Taken.SILENT, [20, 20, 240, 240]),
        (Taken.FILTERED, [20, 20, 240, 240]),
        (Taken.CLOSED, [1, 2, 240, 240]),
    ],
)
def test_paces_grow_and_end(taken: Taken, paces: list[int]) -> None:
    told = Told()
    told.tell(Scanned(frozenset({Listener(4040, "::", os.getuid(), 1, 1)})))
    search = Search(told.tell, told.view, told.settings)
    question, _ = search._next(0.0)
    assert question is not None

    found: list[int] = []
    for _ in range(2000):  # as many as there are minutes in a long job
        search._plan(1, taken, 0.0)
        asked, due = search._next(0.0)
        assert asked is None
        assert due is not None
        found.append(round(due / times.PROBE_AGAIN_MIN))

    assert found[: len(paces)] == paces
    assert set(found[len(paces) :]) == {paces[-1]}


async def test_a_question_to_a_listener_that_is_gone_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "PROBE_FIRST", 10 * PATIENCE)
    asked = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        asked.set()
        await reader.read()  # until the agent gives up

    told = Told()
    async with (
        serving(script, host=ANY) as silent,
        serving(OURS, host=ANY) as ui,
        running(searching(told).run()),
    ):
        told.scan(silent.port)
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
        told.scan(ui.port)  # the silent one is gone
        told.scan(ui.port)
        await told.until(lambda: bool(told.world.proven))

    assert verdicts(told, silent) == []
    assert [one.listener.port for one in told.world.proven] == [ui.port]


async def test_an_answer_that_comes_after_its_listener_went_is_dropped() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await gone.wait()
        await OURS(reader, writer)

    told = Told()
    async with serving(script, host=ANY) as late, running(searching(told).run()):
        told.scan(late.port)
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
        told.listen = lambda: None  # the word of it comes after the answer
        told.scan()
        gone.set()
        await _quiet()

    assert late.open == 0
    assert [type(fact) for fact in told.facts] == [Scanned, Scanned]


async def test_tls_is_found_behind_its_redirector(tmp_path: Path) -> None:
    """As Java has it: the TLS port answers plain HTTP with an alert, the plain port only redirects."""
    context = server_context(tmp_path)

    async def tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(1)
        if first != b"\x16":
            writer.write(bytes.fromhex("15030300020250"))
            await writer.drain()
            return
        async with serving(OURS, tls=context) as inner:
            await _relay(first, reader, writer, inner.port)

    told = Told()
    place = "Location: https://127.0.0.1:0/api/v1/applications"
    async with (
        serving(http("302 Found", kind="", more=place), host=ANY) as plain,
        serving(tls, host=ANY) as secure,
        running(searching(told).run()),
    ):
        told.scan(plain.port, secure.port)
        await told.until(lambda: bool(told.world.proven))
        await _quiet()

    assert [(one.listener.port, one.scheme) for one in told.world.proven] == [(secure.port, Scheme.HTTPS)]
    assert verdicts(told, secure) == [Taken.SPEAKS_TLS, Taken.OURS]
    assert verdicts(told, plain) in ([], [Taken.REDIRECTOR])
    assert secure.connections == 2


async def _relay(first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
    inner_writer.write(first)

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(4096):
            sink.write(data)
            await sink.drain()
        sink.close()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(pump(reader, inner_writer))
            group.create_task(pump(inner_reader, writer))
    except* OSError:
        pass
    finally:
        inner_writer.transport.abort()


async def test_the_hook_has_a_head_start_and_then_needs_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "HOOK_HEAD_START", 10 * PATIENCE)
    told = Told()
    async with serving(OURS, host=ANY) as ui, running(searching(told).run()):
        told.tell(HookReady())
        told.scan(ui.port)
        await _quiet()
        assert ui.connections == 0
        (listener,) = listening(ui.port)
        told.tell(HookBound(1, ui.port, Scheme.HTTP, listener))
        await _quiet()

    assert ui.connections == 0
    assert told.world.hook is HookState.CONNECTED


async def test_a_hook_that_says_nothing_is_not_waited_for_for_ever() -> None:
    told = Told()
    async with serving(OURS, host=ANY) as ui, running(searching(told).run()):
        told.tell(HookReady())
        told.scan(ui.port)
        await told.until(lambda: bool(told.world.proven))

    assert told.world.hook is HookState.ABSENT


async def test_on_a_shared_network_the_hooks_port_is_confirmed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(times, "HOOK_HEAD_START", 10 * PATIENCE)
    told = Told(settings(**NODE))
    async with (
        serving(FOREIGN, host=ANY) as named,
        serving(OURS, host=ANY) as other,
        running(searching(told).run()),
    ):
        told.tell(HookReady())
        told.scan(named.port, other.port)
        (listener,) = listening(named.port)
        told.tell(HookBound(1, named.port, Scheme.HTTP, listener))
        assert [one.listener.port for one in told.world.proven] == [named.port]
        await told.until(lambda: not told.world.proven)
        await _quiet()

    assert verdicts(told, named) == [Taken.FOREIGN]
    assert (named.connections, other.connections) == (1, 0)


async def test_our_own_listeners_are_not_asked() -> None:
    told = Told()
    async with serving(OURS, host=ANY) as own, serving(FOREIGN, host=ANY) as other:
        ours = frozenset(one.inode for one in listening(own.port))
        async with running(searching(told, lambda: ours).run()):
            told.scan(own.port, other.port)
            await told.until(lambda: bool(told.world.verdicts))
            await _quiet()

    assert own.connections == 0


async def test_a_newer_context_is_asked_and_an_older_listener_is_not() -> None:
    told = Told()
    async with serving(OURS, host=ANY) as first, running(searching(told).run()):
        told.scan(first.port)
        await told.until(lambda: len(told.world.proven) == 1)
        async with serving(OURS, host=ANY) as second:
            told.scan(first.port, second.port)
            await told.until(lambda: len(told.world.proven) == 2)

    assert first.connections == 1
    assert second.connections == 1


@pytest.mark.parametrize(
    ("chosen", "asked"), [({}, 1), ({"contexts": "only"}, 2), ({"contexts": "first"}, 2), (NODE, 2)]
)
async def test_listeners_seen_together_are_all_asked_where_it_matters(
    chosen: dict[str, str], asked: int
) -> None:
    told = Told(settings(**chosen))
    async with (
        serving(OURS, host=ANY) as one,
        serving(OURS, host=ANY) as two,
        running(searching(told).run()),
    ):
        told.scan(one.port, two.port)
        await told.until(lambda: len(told.world.proven) == asked)
        await _quiet()

    assert one.connections + two.connections == asked


async def test_while_a_usual_port_is_starting_unusual_ones_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = Told()
    answers = [UP, UP, UP, OURS]

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answers.pop(0)(reader, writer)

    async with serving(script, host=ANY) as ui, serving(FOREIGN, host=ANY) as debugger:
        monkeypatch.setattr("agent.sense.search.usual", lambda port: port == ui.port)
        monkeypatch.setattr("agent.decide.identify.usual", lambda port: port == ui.port)
        async with running(searching(told).run()):
            told.scan(ui.port, debugger.port)
            await told.until(lambda: bool(told.world.proven))
            await _quiet()

    assert ui.connections == 4
    assert debugger.connections == 0


async def test_after_drain_nothing_is_asked() -> None:
    told = Told()
    async with serving(OURS, host=ANY) as ui, running(searching(told).run()):
        told.world = replace(told.world, ending="SIGTERM")
        told.scan(ui.port)
        await _quiet()

    assert ui.connections == 0


async def test_without_candidates_there_is_no_work() -> None:
    told = Told()
    looks = 0

    def view() -> World:
        nonlocal looks
        looks += 1
        return told.world

    search = Search(told.tell, view, told.settings)
    async with running(search.run()):
        await _quiet()
        assert looks == 1
        search.wake()
        await _quiet()

    assert looks == 2
