"""Calls of the hook's port, as the driver's logging makes them and as it never would."""

from __future__ import annotations

import asyncio
import contextlib

from agent.decide.hookpost import HEADER
from sandbox.spark.portwatch import watch_ports
from tests.spark.hook_lives import Life

ANSWER_SECONDS = 10.0
BOUND = "{} org.apache.spark.util.Utils Successfully started service 'SparkUI' on port {}."
STOPPING = "{} org.apache.spark.SparkContext SparkContext is stopping with exitCode 0 from here."


async def call(living: Life, head: str, body: bytes = b"", *, endless: bytes = b"") -> bytes:
    """Send a request and, without an end, ``endless``; return the answer up to the end of the connection."""
    port, _ = living.hook_key()
    async with asyncio.timeout(ANSWER_SECONDS):
        reader, writer = await asyncio.open_connection(
            sock=await living.network.connect("127.0.0.1", port), limit=1 << 20
        )
        answer = b""
        with contextlib.suppress(ConnectionError):
            writer.write(head.encode() + body)
            while endless and not reader.at_eof():
                writer.write(endless)
                await writer.drain()
            answer = await reader.read()
        writer.close()
        return answer


def post(body: str, secret: str, *, length: int | None = None) -> tuple[str, bytes]:
    """A whole request as the driver's logging sends it, or the beginning of one of ``length`` bytes."""
    raw = body.encode()
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n{HEADER}: {secret}\r\nContent-Length: {length or len(raw)}\r\n\r\n"
    return head, raw


async def told(living: Life, body: str) -> None:
    """Post a line as the driver does, once the agent listens for it; AssertionError unless the answer is 200."""
    port, secret = living.hook_key()
    async with watch_ports(living.network) as ports:
        await ports.until(
            lambda found: any(one.socket.port == port for one in found.values()) or None,
            ANSWER_SECONDS,
            "the hook's port",
        )
    answer = await call(living, *post(body, secret))
    assert answer.startswith(b"HTTP/1.1 200 "), answer
