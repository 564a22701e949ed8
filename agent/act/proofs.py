"""What was proven, kept in the shared volume: a bind line comes once, and the agent may be restarted."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ..model import Answered, Fact, HookBound, Listener, Scheme, Taken, Ui, Verdict
from ..paths import PROOF_FILE
from .files import read, write

MOST_READ = 1 << 20  # bytes; a UI takes some 60


def remember(directory: Path, proven: Collection[Ui]) -> None:
    """Keep what is proven now: each UI's very socket, and which JVM told of it, None where its REST answer did.

    Raises nothing: without it a restarted agent proves anew.
    """
    rows = [
        [ui.listener.port, ui.scheme.value, ui.listener.inode, ui.pid, ui.application, ui.started]
        for ui in proven
    ]
    with suppress(OSError):
        write(directory / PROOF_FILE, json.dumps(rows).encode(), 0o600)


def recall(directory: Path, listeners: Collection[Listener]) -> list[Fact]:
    """What a former life of this agent had proven, as facts, of those sockets that are still among `listeners`.

    Nothing where the file is missing or holds something else.
    """
    try:
        rows = json.loads(read(directory / PROOF_FILE, MOST_READ))
    except (OSError, ValueError, RecursionError):
        return []
    now = {(one.inode, one.port): one for one in listeners}
    return [fact for row in rows if (fact := _fact(row, now))] if isinstance(rows, list) else []


def _fact(row: object, now: dict[tuple[int, int], Listener]) -> Fact | None:
    match row:
        case [
            int(port),
            "http" | "https" as scheme,
            int(inode),
            int() | None as pid,
            str(name),
            int(started),
        ]:
            listener = now.get((inode, port))
        case _:
            return None
    if listener is None:
        return None
    if pid is not None:
        return HookBound(pid, port, Scheme(scheme), listener)
    verdict = Verdict(Taken.OURS, "proven before the agent's restart", name, started)
    return Answered(listener, Scheme(scheme), verdict)
