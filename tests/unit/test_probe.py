"""One question to one candidate, on real servers that answer each in its own way, byte by byte where it matters."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.answers import BODY_MAX
from agent.model import Answer, Listener, Question, Said, Scheme
from agent.sense import probe
from agent.sense.probe import HEAD_MAX, TOTAL_MAX, ask, target

from .certificates import client_authority, server_context
from .senses import APPLICATION, PATIENCE, applications, head, http, raw, serving

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LISTED = applications(APPLICATION)


def question(port: int, scheme: Scheme = Scheme.HTTP, address: str = "127.0.0.1") -> Question:
    return Question(Listener(port, address, 185, 1, 1), scheme)


async def asked(port: int, scheme: Scheme = Scheme.HTTP, *, within: float = PATIENCE) -> Answer:
    return await ask(question(port, scheme), asyncio.get_running_loop().time() + within)


async def answer_of(script: Script) -> Answer:
    """The answer to one question, which came on one connection that both ends have closed."""
    async with serving(script) as server:
        answer = await asked(server.port)
    assert server.connections == 1
    return answer


def drip(answer: bytes) -> Script:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        for number in range(len(answer)):
            writer.write(answer[number : number + 1])
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    return script


async def test_one_question_is_one_request_on_one_connection() -> None:
    requests: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await head(reader))
        await http("200 OK", LISTED)(_fed(requests[-1]), writer)

    async with serving(script) as server:
        answer = await asked(server.port)

    assert answer == Answer(Said.HTTP, 200, "application/json", "", LISTED)
    assert server.connections == 1
    (request,) = requests
    parsed = h11.Connection(h11.SERVER)
    parsed.receive_data(request)
    event = parsed.next_event()
    assert isinstance(event, h11.Request)
    assert (event.method, event.target) == (b"GET", b"/api/v1/applications")
    assert dict(event.headers) == {
        b"host": f"127.0.0.1:{server.port}".encode(),
        b"accept": b"application/json",
        b"accept-encoding": b"identity",
        b"connection": b"close",
        b"user-agent": b"spark-ui-agent",
    }
    assert parsed.next_event().__class__ is h11.EndOfMessage


def _fed(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    return reader


HEADER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEADER + b"Transfer-Encoding: chunked\r\n\r\n"
TLS_ALERT = bytes.fromhex("15030300020250")

ANSWERS: dict[str, tuple[bytes, Answer]] = {
    "length": (
        HEADER + b"Content-Length: 3\r\n\r\n[ ]",
        Answer(Said.HTTP, 200, "application/json", "", b"[ ]"),
    ),
    "until the end": (HEADER + b"\r\n[ ]", Answer(Said.HTTP, 200, "application/json", "", b"[ ]")),
    "chunked": (
        CHUNKED + b"1\r\n[\r\n2;x=y\r\n ]\r\n0\r\n\r\n",
        Answer(Said.HTTP, 200, "application/json", "", b"[ ]"),
    ),
    "HTTP/1.0": (b"HTTP/1.0 404 Not Found\r\n\r\n", Answer(Said.HTTP, 404)),
    "interim": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
        Answer(Said.HTTP, 503),
    ),
    "redirect": (
        b"HTTP/1.1 302 Found\r\nLocation: https://h:0/\r\nContent-Length: 0\r\n\r\n",
        Answer(Said.HTTP, 302, "", "https://h:0/"),
    ),
    "cut in the body": (HEADER + b"Content-Length: 9\r\n\r\n[", Answer(Said.NOT_HTTP)),
    "cut in the head": (HEADER, Answer(Said.EOF)),
    "cut in the first word": (b"HTT", Answer(Said.EOF)),
    "nothing": (b"", Answer(Said.EOF)),
    "bad chunk": (CHUNKED + b"xyz\r\n", Answer(Said.NOT_HTTP)),
    "upgrade": (b"HTTP/1.1 101 Up\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", Answer(Said.NOT_HTTP)),
    "TLS alert": (TLS_ALERT, Answer(Said.TLS_ALERT)),
    "TLS alert, cut": (TLS_ALERT[:1], Answer(Said.EOF)),
    "no TLS alert": (b"\x15\x02\x00", Answer(Said.NOT_HTTP)),
    "py4j": (b"!zspy4j.Py4JException: x\n", Answer(Said.NOT_HTTP)),
    "gRPC": (bytes.fromhex("00000604000000000000053fffffff"), Answer(Said.NOT_HTTP)),
    "SSH": (b"SSH-2.0-OpenSSH_9.6\r\n", Answer(Said.NOT_HTTP)),
    "HTTP/2 in text": (b"HTTP/2 200\r\n\r\n", Answer(Said.NOT_HTTP)),
    "bad head": (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Answer(Said.NOT_HTTP)),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("way", [raw, drip], ids=["whole", "byte by byte"])
async def test_what_comes_is_told_as_it_is(name: str, way: Callable[[bytes], Script]) -> None:
    sent, expected = ANSWERS[name]

    assert await answer_of(way(sent)) == expected


async def test_a_server_that_speaks_first_is_no_web_server() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes.fromhex("000006040000000000"))
        await writer.drain()
        await reader.read()

    assert await answer_of(script) == Answer(Said.NOT_HTTP)


def endless(first: bytes, again: bytes) -> Script:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(first)
        while True:
            writer.write(again)
            await writer.drain()

    return script


async def test_an_endless_body_is_cut() -> None:
    for first, again in ((HEADER + b"\r\n", b" " * 4096), (CHUNKED, b"1000\r\n" + b" " * 4096 + b"\r\n")):
        answer = await answer_of(endless(first, again))
        assert (answer.said, answer.status, answer.body) == (Said.HTTP, 200, b" " * BODY_MAX)


async def test_an_endless_head_is_no_answer() -> None:
    for first, again in (
        (HEADER, b"X-More: " + b"x" * 1000 + b"\r\n"),
        (HEADER + b"X-Long: ", b"x" * 1000),
        (b"HTTP/1.1 200 ", b"O" * 1000),
        (b"", 100 * b"HTTP/1.1 100 Continue\r\n\r\n"),
        (CHUNKED, 100 * b"1\r\n \r\n"),
    ):
        assert await answer_of(endless(first, again)) == Answer(Said.NOT_HTTP)
    assert HEAD_MAX < BODY_MAX < TOTAL_MAX


async def test_the_deadline_covers_everything() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            pass

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(HEADER + b"\r\n")
        while True:  # always something new, never an end
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    for script in (silent, slow):
        async with serving(script) as server:
            assert await asked(server.port, within=0.2) == Answer(Said.TIMEOUT)
        assert server.connections == 1
        async with serving(script) as server:
            assert await asked(server.port, Scheme.HTTPS, within=0.2) in (
                Answer(Said.TIMEOUT),
                Answer(Said.TLS_FAILED),
            )


async def test_a_paused_program_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as paused:
        port = paused.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):  # its queue is full now
            assert await asked(port, within=0.2) == Answer(Said.TIMEOUT)


async def test_a_port_without_a_listener_refuses() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))

        assert await asked(bound.getsockname()[1]) == Answer(Said.REFUSED)


async def test_a_reset_is_told() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    assert await answer_of(script) == Answer(Said.RESET)


async def test_an_address_that_cannot_be_asked_is_silent() -> None:
    linklocal = Listener(4040, "fe80::1", 185, 1, 1)  # of which interface?
    deadline = asyncio.get_running_loop().time() + PATIENCE

    assert await ask(Question(linklocal, Scheme.HTTP), deadline) == Answer(Said.TIMEOUT)


async def test_a_socket_that_the_kernel_joined_to_itself_is_no_listener(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    class Unlucky(socket.socket):
        """Has the very port that it will ask as its own."""

        def __init__(self, family: int, kind: int) -> None:
            super().__init__(family, kind)
            self.bind(("127.0.0.1", port))

    monkeypatch.setattr("agent.sense.probe.socket.socket", Unlucky)

    assert await asked(port) == Answer(Said.REFUSED)


async def test_a_cancelled_question_hangs_up() -> None:
    arrived, hung_up = asyncio.Event(), asyncio.Event()

    async def script(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await head(reader)
        arrived.set()
        if await reader.read() == b"":
            hung_up.set()

    async with serving(script) as server:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asked(server.port))
            await arrived.wait()
            task.cancel()
        async with asyncio.timeout(PATIENCE):
            await hung_up.wait()

    assert task.cancelled()
    assert server.connections == 1


async def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(http("200 OK", LISTED)) as proxy, serving(http("200 OK", LISTED)) as server:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        answer = await asked(server.port)

    assert answer.body == LISTED
    assert (proxy.connections, server.connections) == (0, 1)


async def test_no_redirect_is_followed() -> None:
    async with serving(http("200 OK", LISTED)) as other:
        place = f"Location: http://127.0.0.1:{other.port}/api/v1/applications"
        answer = await answer_of(http("302 Found", more=place))

    assert answer.status == 302
    assert other.connections == 0


# --- where it asks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "only", "where"),
    [
        ("::", False, "127.0.0.1"),
        ("::", True, "::1"),
        ("0.0.0.0", False, "127.0.0.1"),
        ("10.1.2.3", False, "10.1.2.3"),
        ("fd00::1", False, "fd00::1"),
    ],
)
def test_a_wildcard_is_asked_on_loopback(address: str, only: bool, where: str) -> None:
    assert target(Listener(4040, address, 185, 1, 1, only)) == where


async def test_an_ipv6_listener_is_asked_by_its_address() -> None:
    requests: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await head(reader))
        await http("200 OK", LISTED)(_fed(requests[-1]), writer)

    async with serving(script, host="::1") as server:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        answer = await ask(question(server.port, address="::1"), deadline)

    assert answer.body == LISTED
    assert f"\r\nHost: [::1]:{server.port}\r\n".encode() in requests[0]


# --- TLS ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("bits", [1024, 2048])
async def test_any_certificate_will_do_and_no_name_is_sent(
    tmp_path: Path, version: ssl.TLSVersion, bits: int
) -> None:
    context = server_context(tmp_path, bits=bits, version=version)
    names: list[str | None] = []
    context.sni_callback = lambda _tls, name, _context: names.append(name)
    async with serving(http("200 OK", LISTED), tls=context) as server:
        answer = await asked(server.port, Scheme.HTTPS)

    assert answer == Answer(Said.HTTP, 200, "application/json", "", LISTED)
    assert names == [None]
    assert probe.context().security_level == 0  # distributions raise it, and would refuse weak keys
    assert server.connections == 1


async def test_an_endless_body_over_tls_is_cut(tmp_path: Path) -> None:
    async with serving(endless(HEADER + b"\r\n", b" " * 4096), tls=server_context(tmp_path)) as server:
        answer = await asked(server.port, Scheme.HTTPS)

    assert answer.body == b" " * BODY_MAX


async def test_a_body_without_length_over_tls_ends_with_the_connection(tmp_path: Path) -> None:
    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(HEADER + b"\r\n[ ]")  # and no goodbye
        await writer.drain()

    context = server_context(tmp_path)
    for script in (raw(HEADER + b"\r\n[ ]"), rude):
        async with serving(script, tls=context) as server:
            answer = await asked(server.port, Scheme.HTTPS)

        assert answer == Answer(Said.HTTP, 200, "application/json", "", b"[ ]")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_wanted_client_certificate_is_an_alert(tmp_path: Path, version: ssl.TLSVersion) -> None:
    context = server_context(tmp_path, version=version)
    context.load_verify_locations(client_authority(tmp_path))
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        # asyncio's server would hang up without the alert.
        server = asyncio.create_task(asyncio.to_thread(refuse, listener, context))
        answer = await asked(listener.getsockname()[1], Scheme.HTTPS)
        refused = await server

    assert answer == Answer(Said.TLS_ALERT)
    assert refused == "PEER_DID_NOT_RETURN_A_CERTIFICATE"


def refuse(listener: socket.socket, context: ssl.SSLContext) -> str | None:
    """Takes one connection whose handshake has to fail, and says why it did."""
    listener.settimeout(PATIENCE)
    with listener.accept()[0] as connection:
        connection.settimeout(PATIENCE)
        try:
            context.wrap_socket(connection, server_side=True).close()
        except ssl.SSLError as error:
            return error.reason
    return None


async def test_plain_http_to_a_tls_port_is_an_alert_or_an_end(tmp_path: Path) -> None:
    # Java answers with an alert (the bytes above), OpenSSL hangs up or gives an alert, by version.
    async with serving(http("200 OK", LISTED), tls=server_context(tmp_path)) as server:
        answer = await asked(server.port)

    assert answer.said in (Said.TLS_ALERT, Said.EOF, Said.RESET)
    assert server.connections == 0  # none that got beyond the handshake


@pytest.mark.parametrize("sent", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"!zspy4j\n", TLS_ALERT[:3]])
async def test_tls_to_a_port_without_it_fails(sent: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        writer.write(sent)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with serving(script) as server:
        answer = await asked(server.port, Scheme.HTTPS)

    assert answer == Answer(Said.TLS_FAILED)
    assert server.connections == 1


# --- anything at all ------------------------------------------------------------------------------------


@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=100).map(lambda tail: HEADER + tail),
        st.binary(max_size=100).map(lambda tail: CHUNKED + tail),
        st.binary(max_size=60).map(lambda tail: b"\x15\x03\x03" + tail),
    ),
    st.sampled_from(Scheme),
)
def test_no_bytes_raise(sent: bytes, scheme: Scheme) -> None:
    async def once() -> Answer:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(4096)
            writer.write(sent)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        async with serving(script) as server:
            return await asked(server.port, scheme)

    answer = asyncio.run(once())

    assert answer.said is not Said.TIMEOUT
    assert answer.said is not Said.REFUSED
