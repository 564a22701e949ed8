"""`discover`: what listens here, what it is taken for and why, and what would be published."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from .. import times
from ..decide import identify
from ..decide.desired import fold, initial
from ..model import Answered, Question, Scanned, Scheme, World
from ..sense.probe import ask as ask_candidate
from ..sense.sockets import SocketTable
from ..settings import Settings, load
from ..tell.client import NoAgentError, RefusedError, ask
from ..tell.discovery import listing
from . import DONE, FAILED, TIMED_OUT, complain

_COLUMNS = ("port", "address", "uid", "backlog", "taken", "why")


def discover(env: Mapping[str, str], *, as_json: bool) -> int:
    """Asks the running agent; where none runs, looks for itself, once. Raises SettingsError."""
    settings = load(env)
    try:
        found = ask(settings.control_socket, "discover", times.DISCOVER)
    except NoAgentError:
        complain("no running agent: looking once, without the log hook")
        found = asyncio.run(look(_scan(), settings))
    except RefusedError as error:
        complain(str(error))
        return FAILED
    except TimeoutError:
        complain(f"the agent gave no answer within {times.DISCOVER:g} s")
        return TIMED_OUT
    print(json.dumps(found) if as_json else table(found))
    return DONE


def _scan() -> Scanned:
    sockets = SocketTable()
    try:
        return sockets.scan()
    finally:
        sockets.close()


async def look(scanned: Scanned, settings: Settings) -> dict[str, object]:
    """Asks each possible UI at most once for each scheme, one after the other, for at most `times.DISCOVER` s."""
    world = fold(initial(), scanned, settings)
    deadline = asyncio.get_running_loop().time() + times.DISCOVER
    asked: set[tuple[int, Scheme]] = set()
    while (question := _next(world, settings, asked)) is not None:
        if asyncio.get_running_loop().time() >= deadline:
            break
        asked.add((question.listener.inode, question.scheme))
        answer = await ask_candidate(
            question, min(deadline, asyncio.get_running_loop().time() + times.PROBE_FIRST)
        )
        verdict = identify.judge(answer, question, settings.identity.application)
        world = fold(world, Answered(question.listener, question.scheme, verdict), settings)
    return listing(world, settings)


def _next(world: World, settings: Settings, asked: set[tuple[int, Scheme]]) -> Question | None:
    return next(
        (
            question
            for question in identify.candidates(world, settings)
            if (question.listener.inode, question.scheme) not in asked
        ),
        None,
    )


def table(found: Mapping[str, object]) -> str:
    """The listeners as a table, then what would be published."""
    listed = found.get("listeners")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    rows = [_COLUMNS, *(tuple(_cell(entry.get(column)) for column in _COLUMNS) for entry in entries)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(_COLUMNS))]
    lines = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    if found.get("degraded") is True:
        lines.append("note: read from /proc, without listen backlogs: only Spark's usual ports are looked at")
    return "\n".join([*lines, "", _wanted(found.get("publish"))])


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _wanted(publish: object) -> str:
    if not isinstance(publish, dict):
        return "nothing is known of what would be published"
    if publish.get("port"):
        return (
            f"to publish: {publish.get('scheme')} port {publish['port']} of application "
            f"{publish.get('application')}, proven by {publish.get('proof')}"
        )
    return f"nothing to publish: {publish.get('found')}; remedy: {publish.get('remedy')}"
