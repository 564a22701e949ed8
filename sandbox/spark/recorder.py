"""Watch the listening TCP sockets of one network namespace, as a process of its own.

Writes one JSON object per line: ``ready`` once, then ``listen`` (first seen in LISTEN, by a dump every few
milliseconds) and ``closed`` (the kernel's destroy event), each with CLOCK_MONOTONIC in nanoseconds. A process of its
own, so that a busy test does not move the stamps.
"""

from __future__ import annotations

import json
import select
import time
from dataclasses import asdict

from sandbox.prompt import prompt
from sandbox.spark.sockdiag import DestroyEvents, ListenerTable, Socket

POLL_SECONDS = 0.005


def say(event: str, at: int, found: Socket | None = None) -> None:
    """Write one line."""
    print(json.dumps({"event": event, "at": at, "socket": asdict(found) if found else None}), flush=True)


def record() -> None:
    """Watch until killed. Raises `OSError` when events were lost: a trace with gaps is none."""
    events = DestroyEvents()
    table = ListenerTable()
    listening: dict[str, Socket] = {}
    say("ready", time.monotonic_ns())
    next_dump = time.monotonic()
    while True:
        readable, _, _ = select.select([events], [], [], max(0.0, next_dump - time.monotonic()))
        at = time.monotonic_ns()
        if readable:
            for gone in events.read():
                if listening.pop(gone.cookie, None) is not None:
                    say("closed", at, gone)
        if time.monotonic() >= next_dump:
            for found in table.dump():
                if found.cookie not in listening:
                    listening[found.cookie] = found
                    say("listen", at, found)
            next_dump = time.monotonic() + POLL_SECONDS


if __name__ == "__main__":
    with prompt():
        record()
