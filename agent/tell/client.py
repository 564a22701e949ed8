"""Asks the running agent over its Unix socket. Standard library alone, without asyncio: it runs in hooks and probes."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

LONGEST_PATH = 107  # bytes: Linux, sun_path holds 108 with the closing zero (unix(7))
_LONGEST_ANSWER = 4 * 1024 * 1024


class NoAgentError(Exception):
    """Nobody answers at the socket; the message says where it was looked for and what to do."""


class RefusedError(Exception):
    """The agent answered that it can't do what was asked."""


def ask(path: Path, command: str, within: float, **arguments: object) -> dict[str, object]:
    """The agent's answer to one command.

    Args:
        path: the socket.
        command: `status`, `discover` or `drain`.
        within: seconds for all of it.
        arguments: the command's own.

    Raises:
        NoAgentError: no socket, nobody listening, no right to connect, or hung up without an answer.
        RefusedError: the agent said no, or something else answered.
        TimeoutError: no whole answer in time.
    """
    line = json.dumps({"command": command, **arguments}).encode() + b"\n"
    answer = _exchange(path, line, time.monotonic() + within)
    try:
        found = json.loads(answer)
    except ValueError:
        raise RefusedError(f"what listens at {path} is not spark-ui-agent") from None
    if not isinstance(found, dict):
        raise RefusedError(f"what listens at {path} is not spark-ui-agent")
    if found.get("ok") is not True:
        raise RefusedError(str(found.get("error", "no reason given")))
    result = found.get("result")
    return dict(result) if isinstance(result, dict) else {}


def _exchange(path: Path, line: bytes, deadline: float) -> bytes:
    if len(bytes(path)) > LONGEST_PATH:
        raise NoAgentError(too_long(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            sock.settimeout(_left(deadline))
            sock.connect(bytes(path))
            sock.sendall(line)
            answer = _receive(sock, deadline)
        except TimeoutError:
            raise
        except OSError as error:
            raise NoAgentError(_nobody(path, error.strerror or str(error))) from error
    if not answer:
        raise NoAgentError(_nobody(path, "it hung up"))
    return answer


def _receive(sock: socket.socket, deadline: float) -> bytes:
    answer = bytearray()
    while not answer.endswith(b"\n") and len(answer) < _LONGEST_ANSWER:
        sock.settimeout(_left(deadline))
        piece = sock.recv(65536)
        if not piece:
            break
        answer += piece
    return bytes(answer)


def _left(deadline: float) -> float:
    """Seconds until the deadline; never 0, which would mean "do not block"."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _nobody(path: Path, why: str) -> str:
    return (
        f"no running agent at {path} ({why}); run this inside the agent's container, "
        "with the agent's own SPARK_UI_AGENT_DIR"
    )


def too_long(path: Path) -> str:
    """What is wrong with the path of a socket, for people."""
    return (
        f"the socket's path {path} has {len(bytes(path))} bytes, a Unix socket's has at most {LONGEST_PATH}; "
        "set SPARK_UI_AGENT_DIR to a shorter path"
    )
