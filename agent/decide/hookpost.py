"""What the log hook posts: its form, and reading it back strictly.

The two lines are the same text in Spark 3.5, 4.1 and 4.3, with and without structured logging, whose values go to
the thread context and not into the message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADER = "X-Spark-UI-Agent-Secret"
UTILS = "org.apache.spark.util.Utils"
CONTEXT = "org.apache.spark.SparkContext"
LAYOUT = "%pid %c %m"  # a log4j2 pattern

# Regular expressions that mean the same in Java and in Python.
BOUND = r"Successfully started service 'SparkUI( \(HTTPS\))?' on port ([0-9]{1,5})\."
STOPPING = r"(?s)SparkContext is stopping with exitCode .*"

_POST = re.compile(r"([0-9]{1,10}) ([A-Za-z0-9_.]{1,200}) (.+)", re.DOTALL)
_BOUND = re.compile(BOUND)
_STOPPING = re.compile(STOPPING)


@dataclass(frozen=True, slots=True)
class Bound:
    """The JVM `pid` (as it sees itself) has bound its UI."""

    pid: int
    port: int
    https: bool


@dataclass(frozen=True, slots=True)
class Stopping:
    """The JVM `pid` is about to close its UI."""

    pid: int


def parse(body: bytes) -> Bound | Stopping | None:
    """The line in the body of a post; None for anything that is not exactly one of the hook's two lines."""
    try:
        match = _POST.fullmatch(body.decode("utf-8"))
    except UnicodeDecodeError:
        return None
    if match is None:
        return None
    pid, logger, message = int(match[1]), match[2], match[3]
    if logger == CONTEXT and _STOPPING.fullmatch(message):
        return Stopping(pid)
    bound = _BOUND.fullmatch(message) if logger == UTILS else None
    if bound is None or not 1 <= int(bound[2]) <= 65535:
        return None
    return Bound(pid, int(bound[2]), bound[1] is not None)
