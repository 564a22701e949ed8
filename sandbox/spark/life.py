"""The user code of a scripted driver: does what it is told over a Unix socket, and says when it was done.

Runs under Spark's Python, copied beside the driver's files, with the standard library and pyspark alone.
One JSON object per line each way; every answer carries CLOCK_MONOTONIC in nanoseconds, which is one clock
for all processes of a machine. When the harness goes away, so does this process.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

CONTROL = "SPARK_UI_SANDBOX_CONTROL"
PR_SET_PDEATHSIG = 1

# PySpark has no public name for these, and no types in this project's environment
_java_context = attrgetter("_jsc")
_jvm = attrgetter("_jvm")
_gateway_port = attrgetter("_gateway.gateway_parameters.port")
_accumulator_address = attrgetter("_accumulatorServer.server_address")

Answer = dict[str, object]


class Life:
    """The commands that are answered, each a method."""

    def __init__(self) -> None:
        self._sql = import_module("pyspark.sql")
        self._session: Any = None

    def context(self, conf: dict[str, str]) -> Answer:
        """Start a SparkContext (the submitted configuration, then ``conf``); tell who it is, where it listens."""
        builder = self._sql.SparkSession.builder
        for name, value in conf.items():
            builder = builder.config(name, value)
        self._session = builder.getOrCreate()
        context = self._session.sparkContext
        # by "host:port" of its block manager, and with no executor the driver is the only one
        executor = _java_context(context).sc().getExecutorMemoryStatus().keys().head()
        return {
            "application": context.applicationId,
            "url": context.uiWebUrl,
            "jvm": _jvm(context).java.lang.ProcessHandle.current().pid(),
            "python": os.getpid(),
            "rpc": int(context.getConf().get("spark.driver.port")),
            "block_manager": int(executor.rpartition(":")[2]),
            "py4j": _gateway_port(context),
            "accumulator": _accumulator_address(context)[1],
        }

    def result(self, distributed: bool) -> Answer:
        """Sum 0 to 999: by tasks, or from a local relation that the driver evaluates without any executor."""
        if distributed:
            row = self._session.range(1000).selectExpr("sum(id)").first()
        else:
            row = self._session.sql("SELECT total * 500 FROM VALUES (999) AS given(total)").first()
        return {"value": row[0]}

    def log_level(self, level: str) -> Answer:
        """Call the context's setLogLevel."""
        self._session.sparkContext.setLogLevel(level)
        return {}

    def stop(self) -> Answer:
        """Stop the context and keep the JVM."""
        requested = time.monotonic_ns()
        self._session.stop()
        return {"requested_at": requested}


def main() -> None:
    """Serve commands until one of them ends this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(os.environ[CONTROL])
        lines = control.makefile("r", encoding="utf-8")

        def answer(to: str, **values: object) -> None:
            line = json.dumps({"answer": to, "at": time.monotonic_ns(), **values})
            control.sendall(line.encode() + b"\n")

        life = Life()
        commands: dict[str, Callable[..., Answer]] = {
            "context": life.context,
            "result": life.result,
            "log_level": life.log_level,
            "stop": life.stop,
        }
        answer("hello")
        for line in lines:
            request: dict[str, Any] = json.loads(line)
            command = request.pop("command")
            if command not in commands:
                answer(command)
                leave(command, **request)
                return
            try:
                values = commands[command](**request)
            except Exception as error:
                answer("failed", error=f"{command}: {error}")
                raise
            answer(command, **values)
    # the harness closed the connection: end without Spark's hooks, there is nobody left to observe them
    os._exit(1)


def leave(command: str, **values: Any) -> None:
    """End as user code does: return for ``end``, raise for ``throw``, sys.exit for ``exit``."""
    if command == "throw":
        raise RuntimeError("thrown by the script")
    if command == "exit":
        sys.exit(values["code"])


if __name__ == "__main__":
    main()
