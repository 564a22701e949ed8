"""Whoever else calls the hook's port: no effect but a count, and the driver is answered all the same."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from sandbox.fakeui import fake_ui
from sandbox.page import fetch
from sandbox.spark.driver import SparkDriver
from sandbox.standin import StandIn
from tests.spark.hook_calls import BOUND, STOPPING, call, post
from tests.spark.hook_lives import Life, life, observe, violations

VERSION = "4.1.4"
CROWD = 1000
STRANGER = 4711  # a uid on the same machine
MOST_GROWTH = 32 << 20  # bytes


async def outcomes(living: Life) -> dict[str, int]:
    """What the agent has counted."""
    line = await living.agent.line(lambda one: "address" in one.fields, "HTTP endpoints")
    port = int(str(line.fields["address"]).rpartition(":")[2])
    page = await fetch(living.network, port, "/metrics")
    found = re.findall(r'hook_posts_total\{outcome="([a-z-]+)"\} (\d+)', page.body.decode())
    return {name: int(count) for name, count in found}


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


@contextlib.asynccontextmanager
async def crowd(living: Life) -> AsyncIterator[Sequence[socket.socket]]:
    """A thousand connections that say nothing, and stay as long as they are let."""
    port, _ = living.hook_key()
    with contextlib.ExitStack() as stack:
        callers = []
        for _ in range(CROWD):
            callers.append(await living.network.connect("127.0.0.1", port))
            stack.callback(callers[-1].close)
        yield callers


async def pester(living: Life, driver: SparkDriver, foreign: int) -> list[bytes]:
    """Everything that a stranger may try while the UI is published; the answers' first lines."""
    _, secret = living.hook_key()
    jvm, wrong = driver.trace.context.jvm, "0" * len(secret)
    answers = [
        await call(living, *post(BOUND.format(jvm, foreign), wrong)),
        await call(living, *post(STOPPING.format(jvm), wrong)),
        await call(living, *post("", wrong, length=1 << 40), endless=b"x" * 65536),
        await call(living, "POST / HTTP/1.1\r\n", endless=b"a: " + b"b" * 4093 + b"\r\n"),
        await call(living, "", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 40 + b"\r\n\r\n"),
        # the secret stands in a file that the Pod's containers can read
        await call(living, *post(BOUND.format(jvm, foreign), secret)),
        await call(living, *post(BOUND.format(jvm + 1, foreign), secret)),
        await call(living, *post(STOPPING.format(jvm + 1), secret)),
        await call(living, *post("", secret, length=1 << 40), endless=b"x" * 65536),
    ]
    return [answer.partition(b"\r\n")[0] for answer in answers]


async def test_strangers_have_no_effect_but_a_count() -> None:
    async with (
        StandIn.start(tls=True) as stand_in,
        life(stand_in) as living,
        fake_ui(living.network, living.scene.application, uid=STRANGER) as foreign,
        living.driver(VERSION) as driver,
    ):
        await living.published(await driver.ui_bound())
        before, memory = len(living.history), resident(living.agent.pid)
        counted = await outcomes(living)
        assert counted.get("bound") == 1

        answers = await pester(living, driver, foreign.port)
        assert [answer.split(b" ")[1] if answer else b"" for answer in answers[:2]] == [b"403", b"403"]
        assert len(answers) == 9
        counted = await outcomes(living)
        assert counted["bound"] == 1
        assert counted["bound-closed"] == 2
        assert counted["forbidden"] >= 2
        assert len(living.history) == before

        async with crowd(living):
            ending = await observe(living, driver, VERSION, "stop()")
            assert resident(living.agent.pid) - memory < MOST_GROWTH
        assert ending.margin > 0
        assert [post.accepted for post in ending.held if post.source != living.network.observer] == [True]
        assert violations(living.history, [ending.listener], living.ip) == []
        assert len(living.history) == before + 1
        assert (await outcomes(living))["stopping"] == 2
