"""The HTTP endpoints, asked over real sockets."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent.model import Status
from agent.settings import Settings
from agent.tell import logs
from agent.tell.metrics import CONTENT_TYPE, Metrics
from agent.tell.web import Web, auto_address
from tests.unit.telling import BLOCKED, PARKED, PUBLISHED, WAITING, made, running, turns

DEADLINE = 10.0


@dataclass
class Agent:
    """What the endpoints tell of, and where they are."""

    web: Web
    out: io.StringIO
    metrics: Metrics
    text: Callable[[], str]
    status: Status = WAITING
    alive: bool = True

    @property
    def place(self) -> tuple[str, int]:
        host, _, port = self.web.address.rpartition(":")
        return host.strip("[]"), int(port)


@asynccontextmanager
async def endpoints(settings: Settings) -> AsyncIterator[Agent]:
    """Running endpoints; returns from the start once they listen or have given up."""
    out = io.StringIO()
    agent: Agent
    metrics = Metrics()

    def text() -> str:
        return agent.text()

    web = Web(
        settings,
        status=lambda: agent.status,
        since=lambda: "2026-01-01T00:00:00Z",
        alive=lambda: agent.alive,
        metrics=text,
        log=logs.configure("info", "json", out),
    )
    agent = Agent(web, out, metrics, metrics.text)
    async with running(web.run()), asyncio.timeout(DEADLINE):
        await turns(5)
        yield agent


@dataclass(frozen=True)
class Got:
    code: int
    headers: dict[str, str]
    body: str


class Peer:
    """One raw connection to the endpoints; its socket is closed whatever happens."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    @classmethod
    @asynccontextmanager
    async def connected(cls, place: tuple[str, int]) -> AsyncIterator[Peer]:
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, place)
            yield cls(sock)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._sock, data)

    async def some(self) -> bytes:
        """What is there, or what comes next; nothing when the server has closed."""
        return await asyncio.get_running_loop().sock_recv(self._sock, 65536)

    async def all(self) -> bytes:
        """What comes until the server closes."""
        data = bytearray()
        while piece := await self.some():
            data += piece
        return bytes(data)


async def send(place: tuple[str, int], *pieces: bytes) -> Got:
    """Sends raw bytes and reads until the server closes."""
    async with Peer.connected(place) as peer:
        for piece in pieces:
            await peer.send(piece)
        head, _, body = (await peer.all()).decode().partition("\r\n\r\n")
    first, *rest = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
    return Got(int(first.split()[1]), headers, body)


async def get_from(place: tuple[str, int], path: str = "/liveness") -> Got:
    return await send(place, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


async def get(agent: Agent, path: str, method: str = "GET") -> Got:
    return await send(agent.place, f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


LOCAL = made(HEALTH_ADDRESS="127.0.0.1:0")
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
LONG = 20_000_000  # more than the kernel's buffers take, so that the reader is waited for


@pytest.mark.parametrize(
    ("status", "startup", "readiness", "line"),
    [
        (WAITING, 200, 503, "waiting: no UI of this driver is bound\n"),
        (PUBLISHED, 200, 200, "published: Service etl-ui leads to http port 40123\n"),
        (PARKED, 200, 503, "parked: the UI of this driver has closed\n"),
        (BLOCKED, 200, 503, "blocked(rbac): 403 Forbidden: patch services; add the verb patch\n"),
        (
            replace(BLOCKED, reason="settings", found="X is 'y'\nZ is ''", remedy="mend them"),
            503,
            503,
            "blocked(settings): X is 'y' Z is ''; mend them\n",
        ),
    ],
)
async def test_startup_and_readiness(status: Status, startup: int, readiness: int, line: str) -> None:
    async with endpoints(LOCAL) as agent:
        agent.status = status
        for path, code in (("/startup", startup), ("/readiness", readiness)):
            got = await get(agent, path)
            assert (got.code, got.body) == (code, line)


async def test_liveness_depends_on_the_loop_alone() -> None:
    async with endpoints(LOCAL) as agent:
        agent.status = BLOCKED
        assert (await get(agent, "/liveness")).code == 200
        agent.alive = False
        got = await get(agent, "/liveness")
        assert (got.code, got.body) == (503, "the event loop has not turned lately\n")


async def test_status_is_json() -> None:
    async with endpoints(LOCAL) as agent:
        agent.status = PUBLISHED
        got = await get(agent, "/status?pretty=1")
        assert got.headers["content-type"] == "application/json"
        assert json.loads(got.body) == {
            "state": "published",
            "reason": "",
            "found": "",
            "remedy": "",
            "port": 40123,
            "scheme": "http",
            "application": "spark-aaa",
            "proof": "rest",
            "hook": "waiting",
            "service": "etl-ui",
            "since": "2026-01-01T00:00:00Z",
        }


async def test_metrics() -> None:
    async with endpoints(LOCAL) as agent:
        agent.metrics.count("parks_total")
        got = await get(agent, "/metrics")
        assert got.headers["content-type"] == CONTENT_TYPE
        assert "\nspark_ui_agent_parks_total 1\n" in got.body


async def test_head_has_the_same_head_and_no_body() -> None:
    async with endpoints(LOCAL) as agent:
        got, head = await get(agent, "/status"), await get(agent, "/status", "HEAD")
        for one in (got, head):
            assert one.headers.pop("date").endswith(" GMT")  # a second may begin between the two
        assert (head.code, head.headers, head.body) == (got.code, got.headers, "")
        assert int(got.headers["content-length"]) == len(got.body)


async def test_other_methods_and_paths() -> None:
    async with endpoints(LOCAL) as agent:
        refused = await get(agent, "/status", "POST")
        assert (refused.code, refused.headers["allow"]) == (405, "GET, HEAD")
        missing = await get(agent, "/")
        assert missing.code == 404
        for path in ("/startup", "/liveness", "/readiness", "/status", "/metrics"):
            assert path in missing.body


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\n\r\n", 400),
        (b"GET /" + b"a" * 9_000, 431),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1_500, 431),
    ],
)
async def test_what_can_not_be_read_is_refused_and_nothing_is_logged(request_: bytes, code: int) -> None:
    async with endpoints(LOCAL) as agent:
        assert (await send(agent.place, request_)).code == code
        assert (await get(agent, "/liveness")).code == 200
        assert agent.out.getvalue().count("\n") == 1


async def test_a_request_may_come_in_pieces_and_a_second_one_is_not_answered() -> None:
    async with endpoints(LOCAL) as agent:
        request = b"GET /liveness HTTP/1.1\r\nHost: x\r\n\r\n"
        got = await send(agent.place, *(bytes([byte]) for byte in request))
        assert (got.headers["connection"], got.body) == ("close", "the event loop turns\n")
        assert (await send(agent.place, request + request)).body == "the event loop turns\n"


async def test_one_connection_too_many_takes_the_place_of_the_oldest_silent_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.times.ENDPOINT", 1000.0)  # so that nothing else closes them
    async with endpoints(LOCAL) as agent, AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(Peer.connected(agent.place)) for _ in range(32)]
        assert (await get(agent, "/liveness")).code == 200
        assert await silent[0].all() == b""
        more = await stack.enter_async_context(
            Peer.connected(agent.place)
        )  # in the place of the one that got
        await more.send(REQUEST)
        await silent[1].send(REQUEST)
        for one in (more, silent[1]):
            assert b"200 OK" in await one.all()


async def test_who_has_asked_is_not_dropped_for_a_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.times.ENDPOINT", 1000.0)
    async with endpoints(LOCAL) as agent, AsyncExitStack() as stack:
        agent.text = lambda: "x" * LONG
        slow = await stack.enter_async_context(Peer.connected(agent.place))
        await slow.send(REQUEST)
        head = await slow.some()
        silent = [await stack.enter_async_context(Peer.connected(agent.place)) for _ in range(32)]
        assert await silent[0].all() == b""
        assert len(head + await slow.all()) > LONG


async def test_a_silent_peer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.times.ENDPOINT", 0.01)
    async with endpoints(LOCAL) as agent, Peer.connected(agent.place) as peer:
        await peer.send(b"GET /status HTT")
        assert await peer.all() == b""


async def test_a_peer_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.times.ENDPOINT", 0.1)
    async with endpoints(LOCAL) as agent, Peer.connected(agent.place) as peer:
        agent.text = lambda: "x" * LONG
        await peer.send(REQUEST)
        async with Peer.connected(agent.place) as later:  # its time ends after the first one's
            assert await later.all() == b""
        assert 0 < len(await peer.all()) < LONG


async def test_a_defect_is_one_line_in_the_log_and_ends_nothing() -> None:
    def fails() -> str:
        raise LookupError("no such metric")

    async with endpoints(LOCAL) as agent:
        agent.text = fails
        got = await get(agent, "/metrics")
        assert (got.code, got.headers["server"]) == (500, "spark-ui-agent")
        assert (await get(agent, "/liveness")).code == 200
        told = [json.loads(line) for line in agent.out.getvalue().splitlines()[1:]]
    assert [(one["level"], one["error"]) for one in told] == [("error", "LookupError: no such metric")]


async def test_no_version_is_told_to_strangers() -> None:
    async with endpoints(LOCAL) as agent:
        for request in (REQUEST, b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\r\n\r\n", b"a" * 9_000):
            assert (await send(agent.place, request)).headers["server"] == "spark-ui-agent"


async def test_the_end_closes_every_connection_and_frees_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.times.ENDPOINT", 1000.0)
    async with AsyncExitStack() as stack:
        async with endpoints(LOCAL) as agent:
            place = agent.place
            peer = await stack.enter_async_context(Peer.connected(place))
            await peer.send(b"GET /")
            await get(agent, "/liveness")
            agent.text = lambda: "x" * LONG
            slow = await stack.enter_async_context(Peer.connected(place))
            await slow.send(REQUEST)
            await slow.some()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        async with asyncio.timeout(DEADLINE):
            assert await peer.all() == b""
            assert len(await slow.all()) < LONG - 65536
    assert (agent.web.address, agent.web.inodes) == ("", frozenset())
    with pytest.raises(ConnectionRefusedError):
        await get_from(place)


async def test_a_taken_port_is_one_warning_and_no_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        async with endpoints(made(HEALTH_ADDRESS=address)) as agent:
            assert agent.web.address == ""
            (line,) = agent.out.getvalue().splitlines()
    told = json.loads(line)
    assert (told["level"], told["address"], told["error"]) == ("warning", address, "Address already in use")
    assert "SPARK_UI_AGENT_HEALTH_ADDRESS" in told["remedy"]


async def test_an_address_of_another_host_is_one_warning() -> None:
    async with endpoints(made(HEALTH_ADDRESS="192.0.2.1:0")) as agent:
        assert agent.web.address == ""
        assert agent.out.getvalue().count("\n") == 1


async def test_off() -> None:
    async with endpoints(made(HEALTH_ADDRESS="off")) as agent:
        assert (agent.web.address, agent.out.getvalue()) == ("", "")


async def test_the_listening_socket_is_known_by_its_inode() -> None:
    async with endpoints(LOCAL) as agent:
        (inode,) = agent.web.inodes
        listening = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()]
        port = agent.place[1]
        assert [row[1] for row in listening if row[9] == str(inode)] == [f"0100007F:{port:04X}"]


async def test_ipv6_takes_ipv4_as_well() -> None:
    async with endpoints(made(HEALTH_ADDRESS="[::]:0")) as agent:
        port = agent.place[1]
        for host in ("127.0.0.1", "::1"):
            assert (await get_from((host, port))).code == 200


@pytest.mark.parametrize(
    ("ips", "host_ip", "address"),
    [
        ({"10.1.0.1"}, "192.0.2.1", ("0.0.0.0", 4900)),
        ({"10.1.0.1", "fd00::5"}, "192.0.2.1", ("::", 4900)),
        ({"fd00::5"}, "fd00::1", ("::", 4900)),
        ({"192.0.2.1"}, "192.0.2.1", ("127.0.0.1", 0)),
        (set(), "", ("0.0.0.0", 4900)),
    ],
)
def test_auto_address(ips: set[str], host_ip: str, address: tuple[str, int]) -> None:
    identity = replace(made().identity, ips=frozenset(ips), host_ip=host_ip)
    assert auto_address(identity) == address
