"""Logs are compared without what varies by itself, and with all that a disturbance would change."""

from __future__ import annotations

import pytest

from sandbox.spark.likeness import differences, likeness

T = "26/12/01 15:40:40 INFO"
U = "26/12/02 07:00:01 INFO"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{T} SparkUI: up", f"{U} SparkUI: up"),
        (
            f"{T} CodeGenerator: Code generated in 1893.387048 ms",
            f"{U} CodeGenerator: Code generated in 12 ms",
        ),
        (f"{T} Utils: service 'SparkUI' on port 38195.", f"{T} Utils: service 'SparkUI' on port 4040."),
        (
            f"{T} BlockManager: Initialized BlockManager: BlockManagerId(driver, 10.98.0.1, 40897, None)",
            f"{T} BlockManager: Initialized BlockManager: BlockManagerId(driver, 10.98.0.1, 7079, None)",
        ),
        (
            f"{T} SparkUI: Stopped Spark web UI at http://10.98.0.1:38195",
            f"{T} SparkUI: Stopped Spark web UI at http://10.98.0.1:4040",
        ),
        (
            f"{T} A: dir /tmp/spark-ui-agent-driver-8ajmc17h/tmp/blockmgr-194da0a5-beac-4663-8fb8-aa0088541140",
            f"{T} A: dir /tmp/spark-ui-agent-driver-x_2/tmp/blockmgr-00000000-0000-0000-0000-aa0088541141",
        ),
        (f"{T} Executor: MutableURLClassLoader@62ece74b for", f"{T} Executor: MutableURLClassLoader@1f for"),
        (f"{T} A: id spark-{'a' * 32}", f"{T} A: id spark-{'b' * 32}"),
        (f"{T} A: id local-1796139634694", f"{T} A: id local-1796139634695"),
        (
            f"{T} Executor: Finished task 0.0 in stage 0.0 (TID 0). 1888 bytes result sent to driver",
            f"{T} Executor: Finished task 0.0 in stage 0.0 (TID 0). 1845 bytes result sent to driver",
        ),
        ('Exception in thread "dispatcher-3" x', 'Exception in thread "dispatcher-4" x'),
    ],
)
def test_what_differs_from_run_to_run_is_the_same(one: str, other: str) -> None:
    assert differences([one], [other]) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{T} A: x", "26/12/01 15:40:40 WARN A: x"),
        (f"{T} A: x", f"{T} B: x"),
        (f"{T} A: 2 tasks", f"{T} A: 3 tasks"),
        (f"{T} A: free 116.9 MiB", f"{T} A: free 117.0 MiB"),
        ("\tat java.base/A.run(A.java:1)", "\tat java.base/A.run(A.java:2)"),
        (f"{T} A: from 10.98.0.1:4040", f"{T} A: from 10.98.0.2:4040"),
        ("WARNING: x", "x"),
    ],
)
def test_everything_else_is_a_difference(one: str, other: str) -> None:
    assert differences([one], [other]) == [f"+ {likeness(one)}", f"- {likeness(other)}"]


def test_a_line_that_comes_once_more_is_told_and_the_order_is_not() -> None:
    a, b, warning = f"{T} A: a", f"{T} B: b", "26/12/01 15:40:40 WARN TransportChannelHandler: Exception"
    assert differences([a, b, a], [a, a, b]) == []
    assert differences([a, warning, b], [b, a]) == ["+ <time> WARN TransportChannelHandler: Exception"]
    assert differences([a], [a, a]) == ["- <time> INFO A: a"]
