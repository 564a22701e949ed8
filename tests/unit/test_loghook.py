"""The hook's receiver on a real socket: heard, answered when gone, and deaf to everyone without the secret."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from agent import times
from agent.decide.hookpost import CONTEXT, HEADER, UTILS
from agent.decide.log4j import Bounds
from agent.model import Fact, HookBound, HookStopping, Scanned, Scheme
from agent.sense.loghook import MOST_BODY, MOST_HEAD, MOST_KNOWN, MOST_STRANGERS, LogHook
from agent.sense.sockets import SocketTable

from .senses import PATIENCE

SECRET = "0123456789abcdef0123456789abcdef"
STOP = f"42 {CONTEXT} SparkContext is stopping with exitCode 0.".encode()


def bind(port: int, name: str = "SparkUI") -> bytes:
    return f"42 {UTILS} Successfully started service '{name}' on port {port}.".encode()


def post(body: bytes, secret: str | None = SECRET, **more: str) -> bytes:
    """As HttpURLConnection writes it."""
    headers = {"Content-Type": "text/plain", "User-Agent": "Java/17.0.15", "Host": "127.0.0.1"}
    headers |= {"Accept": "*/*", "Connection": "keep-alive", "Content-Length": str(len(body)), **more}
    if secret is not None:
        headers[HEADER] = secret
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST / HTTP/1.1\r\n{head}\r\n".encode() + body


async def never(_pid: int, _deadline: float) -> bool:
    await asyncio.Event().wait()
    return True


async def at_once(_pid: int, _deadline: float) -> bool:
    return True


@dataclass
class Scene:
    port: int
    facts: list[Fact] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.changed.set()

    def count(self, outcome: str) -> None:
        self.outcomes.append(outcome)
        self.changed.set()

    def warn(self, line: str) -> None:
        self.warnings.append(line)
        self.changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    async def say(self, request: bytes) -> bytes:
        """One connection: the whole request, then the whole answer."""
        async with asyncio.timeout(PATIENCE):
            reader, writer = await self.connect()
            writer.write(request)
            try:
                return await reader.read()
            finally:
                writer.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@contextlib.asynccontextmanager
async def listening_hook(
    withdrawn: Callable[[int, float], Awaitable[bool]] = at_once, hook_timeout: float = 2.0
) -> AsyncIterator[Scene]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    scene = Scene(port)
    table = SocketTable()
    hook = LogHook(
        port,
        SECRET,
        hook_timeout,
        scene.tell,
        scan=table.scan,
        withdrawn=withdrawn,
        count=scene.count,
        warn=scene.warn,
        driver_uid=os.getuid(),
    )
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(hook.run())
            await asyncio.sleep(0)
            assert hook.inodes
            yield scene
            task.cancel()
    finally:
        table.close()
    assert hook.inodes == frozenset()


async def test_a_bind_line_is_told_with_its_listener() -> None:
    async with listening_hook() as scene:
        with socket.create_server(("127.0.0.1", 0)) as ui:
            port = ui.getsockname()[1]
            answer = await scene.say(post(bind(port)))
            inode = os.fstat(ui.fileno()).st_ino
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in answer.lower()
    (fact,) = scene.facts
    assert isinstance(fact, HookBound)
    assert (fact.pid, fact.port, fact.scheme) == (42, port, Scheme.HTTP)
    assert fact.listener is not None
    assert (fact.listener.port, fact.listener.inode) == (port, inode)
    assert scene.outcomes == ["bound"]


async def test_a_bind_line_for_a_port_where_nothing_listens_names_no_listener() -> None:
    async with listening_hook() as scene:
        # The hook's own port stands for one that listens, but not for the driver.
        for port in (1, scene.port):
            assert (await scene.say(post(bind(port, "SparkUI (HTTPS)")))).startswith(b"HTTP/1.1 200 ")
    assert scene.facts == [HookBound(42, port, Scheme.HTTPS, None) for port in (1, scene.port)]
    assert scene.outcomes == ["bound-closed", "bound-closed"]


async def test_sockets_of_another_user_are_not_the_drivers() -> None:
    facts: list[Fact] = []
    with socket.create_server(("127.0.0.1", 0)) as ui, socket.create_server(("127.0.0.1", 0)) as probe:
        port, own = ui.getsockname()[1], probe.getsockname()[1]
        probe.close()
        table = SocketTable()
        hook = LogHook(
            own,
            SECRET,
            2.0,
            facts.append,
            scan=table.scan,
            withdrawn=at_once,
            count=lambda _: None,
            warn=lambda _: None,
            driver_uid=os.getuid() + 1,
        )
        task = asyncio.create_task(hook.run())
        await asyncio.sleep(0)
        await Scene(own).say(post(bind(port)))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        table.close()
    assert facts == [HookBound(42, port, Scheme.HTTP, None)]


async def test_stopping_is_answered_only_when_it_is_withdrawn() -> None:
    gone = asyncio.Event()
    order: list[str] = []

    async def withdrawn(pid: int, deadline: float) -> bool:
        order.append(f"asked for {pid}")
        assert deadline <= asyncio.get_running_loop().time() + 30
        await gone.wait()
        return True

    async with listening_hook(withdrawn, hook_timeout=30) as scene:
        reader, writer = await scene.connect()
        writer.write(post(STOP))
        answer = asyncio.create_task(reader.read())
        await scene.until(lambda: bool(order))
        # Others are served meanwhile, and the driver still waits after them.
        await scene.say(post(bind(1)))
        assert not answer.done()
        assert scene.facts[0] == HookStopping(42)
        order.append("gone")
        gone.set()
        assert (await answer).startswith(b"HTTP/1.1 200 ")
        writer.close()
    assert order == ["asked for 42", "gone"]
    assert scene.outcomes == ["bound-closed", "stopping"]


async def test_stopping_is_answered_before_the_driver_gives_up() -> None:
    async with listening_hook(never, hook_timeout=0.4) as scene:
        reader, writer = await scene.connect()
        began = time.monotonic()
        writer.write(post(STOP))
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        took = time.monotonic() - began
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert took >= Bounds.of(0.4).answer - 0.02
    assert scene.outcomes == ["stopping-late"]


async def test_a_withdrawal_that_says_no_is_late() -> None:
    async def late(_pid: int, _deadline: float) -> bool:
        return False

    async with listening_hook(late) as scene:
        assert (await scene.say(post(STOP))).startswith(b"HTTP/1.1 200 ")
    assert scene.outcomes == ["stopping-late"]


@pytest.mark.parametrize("secret", [None, "", "0" * 32, SECRET + "0", SECRET[:-1], SECRET.upper()])
async def test_without_the_secret_nothing_changes(secret: str | None) -> None:
    async with listening_hook() as scene:
        for body in (STOP, bind(scene.port)):
            assert (await scene.say(post(body, secret))).startswith(b"HTTP/1.1 403 ")
    assert scene.facts == []
    assert scene.outcomes == ["forbidden", "forbidden"]


async def test_the_secret_twice_is_once_too_often() -> None:
    async with listening_hook() as scene:
        twice = post(STOP).replace(b"\r\n\r\n", f"\r\n{HEADER}: x\r\n\r\n".encode(), 1)
        assert (await scene.say(twice)).startswith(b"HTTP/1.1 403 ")
    assert scene.facts == []


async def test_a_line_that_is_none_of_ours_is_answered_and_changes_nothing() -> None:
    async with listening_hook() as scene:
        answer = await scene.say(post(b"42 org.apache.spark.SparkContext Running Spark version 4.1.4"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert scene.facts == []
    assert scene.outcomes == ["unknown"]


@pytest.mark.parametrize(
    ("request_", "status", "outcome"),
    [
        (post(b"x" * (MOST_BODY + 1)), b"413", "malformed"),
        (post(b"").replace(b"POST", b"GET"), b"405", "malformed"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"", "malformed"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * (2 * MOST_HEAD), b"", "malformed"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"", "malformed"),
    ],
)
async def test_what_is_no_post_of_the_hooks(request_: bytes, status: bytes, outcome: str) -> None:
    async with listening_hook() as scene:
        with contextlib.suppress(ConnectionResetError):
            assert (await scene.say(request_)).removeprefix(b"HTTP/1.1 ").startswith(status)
        await scene.until(lambda: bool(scene.outcomes))
    assert scene.facts == []
    assert scene.outcomes == [outcome]


async def test_an_endless_body_is_cut_off() -> None:
    async with listening_hook() as scene:
        reader, writer = await scene.connect()
        head = post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        writer.write(head)
        with contextlib.suppress(ConnectionError):
            while not scene.outcomes:
                writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
                await asyncio.wait_for(writer.drain(), PATIENCE)
                await asyncio.sleep(0)
            await reader.read()
        writer.close()
    assert scene.outcomes == ["malformed"]
    assert scene.facts == []


async def test_half_a_request_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "HOOK_REQUEST", 0.05)
    async with listening_hook() as scene:
        for half in (b"", post(STOP)[:30], post(STOP)[:-1]):
            assert await scene.say(half) == b""
    assert scene.facts == []
    assert scene.outcomes == ["slow"] * 3


async def test_a_caller_that_hangs_up_leaves_nothing_behind() -> None:
    async with listening_hook() as scene:
        for request in (b"", post(STOP)[:30], post(STOP)[:-1]):
            _, writer = await scene.connect()
            writer.write(request)
            await writer.drain()
            writer.close()
            await scene.until(lambda: bool(scene.outcomes))
            assert scene.outcomes.pop() in ("malformed", "broken")
    assert scene.facts == []


async def test_a_driver_that_gives_up_first_does_no_harm() -> None:
    gone = asyncio.Event()

    async def withdrawn(_pid: int, _deadline: float) -> bool:
        await gone.wait()
        return True

    async with listening_hook(withdrawn) as scene:
        _, writer = await scene.connect()
        writer.write(post(STOP))
        await scene.until(lambda: bool(scene.facts))
        writer.transport.abort()
        gone.set()
        await scene.until(lambda: bool(scene.outcomes))
        assert (await scene.say(post(bind(1)))).startswith(b"HTTP/1.1 200 ")
    assert scene.facts == [HookStopping(42), HookBound(42, 1, Scheme.HTTP, None)]


async def test_a_thousand_silent_connections_keep_no_driver_out() -> None:
    async with listening_hook() as scene:
        crowd = [await scene.connect() for _ in range(1000)]
        assert (await scene.say(post(STOP))).startswith(b"HTTP/1.1 200 ")
        await scene.until(lambda: len(scene.outcomes) > 1000 - MOST_STRANGERS)
        assert scene.facts == [HookStopping(42)]
        for _, writer in crowd:
            writer.close()
    assert set(scene.outcomes) <= {"stopping", "malformed", "broken"}


async def test_requests_with_the_secret_are_bounded_too() -> None:
    async with listening_hook(never, hook_timeout=30) as scene:
        waiting = []
        for _ in range(MOST_KNOWN):
            _, writer = await scene.connect()
            writer.write(post(STOP))
            waiting.append(writer)
            await scene.until(lambda: len(scene.facts) == len(waiting))
        assert (await scene.say(post(STOP))).startswith(b"HTTP/1.1 503 ")
        for writer in waiting:
            writer.close()
    assert len(scene.facts) == MOST_KNOWN


async def test_a_taken_port_is_said_once_and_used_once_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "HOOK_PORT_RETRY", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        scene = Scene(foreign.getsockname()[1])
        hook = LogHook(
            scene.port,
            SECRET,
            2.0,
            scene.tell,
            scan=lambda: Scanned(frozenset()),
            withdrawn=at_once,
            count=scene.count,
            warn=scene.warn,
            driver_uid=os.getuid(),
        )
        task = asyncio.create_task(hook.run())
        await scene.until(lambda: bool(scene.warnings))
        assert str(scene.port) in scene.warnings[0]
        assert hook.inodes == frozenset()
    answer = b""
    async with asyncio.timeout(PATIENCE):
        while not answer:
            with contextlib.suppress(ConnectionRefusedError):
                answer = await scene.say(post(STOP))
    assert answer.startswith(b"HTTP/1.1 200 ")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(scene.warnings) == 1
