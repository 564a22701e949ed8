"""Whether two drivers logged the same: lines with what differs from run to run taken out, and nothing else.

Taken out are times, ports, ids (of applications, objects, temporary folders), thread names and the sizes of task results.
Everything that a disturbance would add or take away stays: levels, classes, texts, counts, other sizes, stack frames.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]+\]|localhost)"

_VARYING = (
    # Spark's default layout: %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
    (re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d "), "<time> "),
    (re.compile(r"\b\d+(?:\.\d+)?(?:E-?\d+)? (?:ms|s|seconds)\b"), "<duration>"),
    (re.compile(r"spark-ui-agent-driver-\w+"), "<folder>"),
    (re.compile(_UUID), "<id>"),
    (re.compile(r"\bspark-[0-9a-f]{32}\b|\blocal-\d{13}\b"), "<application>"),
    (re.compile(r"(?<=@)[0-9a-f]{1,8}\b"), "<object>"),
    (re.compile(r"\bon port \d+"), "on port <port>"),
    (re.compile(rf"({_ADDRESS}):\d+"), r"\1:<port>"),
    (re.compile(rf"(BlockManagerId\(\w+, {_ADDRESS}), \d+"), r"\1, <port>"),
    # a task's metrics go with its result, but not those that are 0, as the time of garbage collection is or is not
    (re.compile(r"\b\d+ bytes result sent to driver"), "<size> bytes result sent to driver"),
    (re.compile(r'(?<=in thread )"[^"]*"'), "<thread>"),
)


def likeness(line: str) -> str:
    """Return a log line without what differs from run to run."""
    for pattern, instead in _VARYING:
        line = pattern.sub(instead, line)
    return line


def differences(ours: Iterable[str], theirs: Iterable[str]) -> list[str]:
    """Return the lines that only one log has, marked ``+`` (only in ``ours``) or ``-``; none: the logs are the same.

    A line that one log has more often counts as often. The order is not looked at: it is that of Spark's threads,
    which race.
    """
    mine, others = Counter(map(likeness, ours)), Counter(map(likeness, theirs))
    more = [f"+ {line}" for line in (mine - others).elements()]
    return more + [f"- {line}" for line in (others - mine).elements()]
