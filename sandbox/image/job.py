"""The job of the sandbox's driver Pods: it does the steps that its arguments name, and prints each when it is done.

    context[:PORT]  result  executors:N  await:NAME  stop  throw  exit:N  hoard

``PORT`` is asked for as the UI's, whatever was submitted. ``await:NAME`` waits for the file /tmp/NAME, which whoever
steers the job makes (`kubectl exec ... touch`). A line is the time (seconds of the epoch), the step and what came of it.
The file is copied into the image: it needs PySpark alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

POLL_SECONDS = 0.05


def session(conf: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Return the SparkSession; the first call makes it, with ``conf`` on top of what was submitted."""
    builder = import_module("pyspark.sql").SparkSession.builder
    for name, value in conf.items():
        builder.config(name, value)
    return builder.getOrCreate()


def context(argument: str) -> str:
    """Make a SparkContext; its UI's address is what comes of it."""
    return str(session({"spark.ui.port": argument} if argument else {}).sparkContext.uiWebUrl)


def result(_argument: str) -> str:
    """Count by Spark: the sum of 0 to 999."""
    rows = session().range(1000).selectExpr("sum(id)").collect()
    return str(rows[0][0])


def executors(argument: str) -> str:
    """Wait until so many executors have registered."""
    # the driver counts as one of them
    while session().sparkContext.defaultParallelism <= int(argument):
        time.sleep(POLL_SECONDS)
    return argument


def wait(argument: str) -> str:
    """Wait until the file /tmp/NAME exists."""
    while not Path("/tmp", argument).exists():
        time.sleep(POLL_SECONDS)
    return argument


def stop(_argument: str) -> str:
    """Stop the context; the process goes on."""
    session().stop()
    return ""


def throw(argument: str) -> str:
    """End by an exception."""
    raise RuntimeError(argument or "as asked for")


def leave(argument: str) -> str:
    """End with an exit status of one's own."""
    sys.exit(int(argument))


def hoard(_argument: str) -> str:
    """Take memory until the kernel ends the container."""
    taken = []
    while True:
        taken.append(b"\1" * (64 << 20))


STEPS = {
    "context": context,
    "result": result,
    "executors": executors,
    "await": wait,
    "stop": stop,
    "throw": throw,
    "exit": leave,
    "hoard": hoard,
}

if __name__ == "__main__":
    for word in sys.argv[1:]:
        name, _, detail = word.partition(":")
        came = STEPS[name](detail)
        print(f"{time.time():.6f} {name} {came}".rstrip(), flush=True)
