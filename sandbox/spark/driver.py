"""A real Spark driver with a scripted life and a trace of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox import launch
from sandbox.netns import NetworkNamespace
from sandbox.page import fetch
from sandbox.scratch import scratch_folder
from sandbox.spark.control import Control, ControlError
from sandbox.spark.master import LocalMaster, Master
from sandbox.spark.output import LONGEST_LINE, follow
from sandbox.spark.portwatch import PortWatch, watch_ports
from sandbox.spark.submission import Launcher, Submission, prepare
from sandbox.spark.trace import Context, Listener, Trace

# stop() takes about a second; a hook that holds it, some more
CLOSE_SECONDS = 60.0
EXIT_SECONDS = 90.0
TAIL_LINES = 40


class DriverError(Exception):
    """The driver did not do what it was told. The message ends with the last lines of its log."""


class SparkDriver:
    """A running driver; made by `start`. Each command returns when the driver has said that it was done.

    ``pid`` is the process that was started: the JVM, or with the ``python`` launcher the Python script. Commands raise
    `DriverError` when the driver fails or ends instead, waits `TimeoutError` after a bounded time.
    """

    def __init__(
        self,
        *,
        submission: Submission,
        namespace: NetworkNamespace | None,
        process: asyncio.subprocess.Process,
        control: Control,
        ports: PortWatch,
        log_file: Path,
        started_at: int,
    ) -> None:
        self.submission = submission
        self.namespace = namespace
        self.pid = process.pid
        self.log_file = log_file
        self.trace = Trace(started_at=started_at, listeners=ports.listeners)
        self._process = process
        self._control = control
        self._ports = ports
        self._exit = asyncio.create_task(follow(process, self.trace, log_file))
        self._first = asyncio.create_task(self.new_context())

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls,
        *,
        version: str,
        namespace: NetworkNamespace | None = None,
        master: Master | None = None,
        launcher: Launcher = "spark-submit",
        app_id: str | None = None,
        conf: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        conf_dir: Path | None = None,
        uid: int | None = None,
        gid: int | None = None,
        reads: Sequence[Path] = (),
        directory: Path | None = None,
    ) -> AsyncIterator[SparkDriver]:
        """Start a driver (see `Submission`) whose first context starts at once; killed when the block ends.

        ``directory``: an existing folder that keeps its files and ``driver.log``; by default a temporary one.
        Without a namespace it runs in this process's own network, and needs no root.
        """
        submission = Submission(
            version=version,
            master=master or LocalMaster(),
            launcher=launcher,
            app_id=app_id,
            conf=conf or {},
            env=env or {},
            conf_dir=conf_dir,
            uid=uid,
            gid=gid,
            reads=reads,
        )
        async with contextlib.AsyncExitStack() as stack:
            meeting = _meeting_place(stack.enter_context(scratch_folder("driver")))
            folder = directory or meeting / "driver"
            control = await stack.enter_async_context(Control.listen(meeting / "control"))
            address = None if namespace is None else namespace.address
            prepared = await asyncio.to_thread(prepare, submission, folder, address, control.path)
            ports = await stack.enter_async_context(watch_ports(namespace))
            started_at = time.monotonic_ns()
            process = await launch.start(
                prepared.argv,
                env=prepared.env,
                namespace_fd=None if namespace is None else namespace.fd,
                uid=uid,
                gid=gid,
                reads=prepared.reads,
                binds=prepared.binds,
                cwd=folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE,
            )
            stack.push_async_callback(launch.end, process)
            driver = cls(
                submission=submission,
                namespace=namespace,
                process=process,
                control=control,
                ports=ports,
                log_file=folder / "driver.log",
                started_at=started_at,
            )
            stack.push_async_callback(driver._end)
            yield driver

    async def new_context(self, conf: Mapping[str, str] | None = None) -> Context:
        """Start a SparkContext (the first is started by `start` already) and wait until it is there."""
        told = await self._ask("context", conf=dict(conf or {}))
        del told["answer"]
        context = Context(ready_at=told.pop("at"), **told)
        if context.url is not None:
            context.listener = await self.listens(context.port)
        self.trace.contexts.append(context)
        return context

    async def ui_bound(self) -> int:
        """Wait for the first context and return its UI's port."""
        return (await asyncio.shield(self._first)).port

    async def listens(self, port: int) -> Listener:
        """Wait for a listening socket at ``port``: a context's UI, before the context is there."""
        return await self._ports.until(
            lambda listeners: _open_listener(listeners, port), CLOSE_SECONDS, f"port {port}"
        )

    async def result(self) -> object:
        """Have the driver compute 499500: by a job with tasks, or without one where there is no executor."""
        told = await self._ask("result", distributed=self.submission.master.distributed)
        self.trace.results.append((told["at"], told["value"]))
        return told["value"]

    async def rest_id(self) -> str:
        """Ask the UI's REST interface, once, for the id of its one application (a connection by the observer)."""
        context = self.trace.context
        page = await fetch(
            self.namespace, context.port, "/api/v1/applications", scheme=context.scheme, seconds=CLOSE_SECONDS
        )
        applications = page.json()
        if not isinstance(applications, list) or len(applications) != 1:
            raise DriverError(f"the UI answers {page.status}: {page.body[:500]!r}")
        return str(applications[0]["id"])

    async def set_log_level(self, level: str) -> None:
        """Call setLogLevel of the running context."""
        await self._ask("log_level", level=level)

    async def stop_context(self) -> None:
        """Stop the newest context; the JVM and the script stay."""
        told = await self._ask("stop")
        self.trace.context.stop_requested_at = told["requested_at"]
        self.trace.context.stopped_at = told["at"]

    async def ui_closed(self) -> int:
        """Wait for the kernel's word that the newest context's UI port is closed; return its instant."""
        listener = self.trace.context.listener
        if listener is None:
            raise DriverError("the newest context has no UI")
        return await self._ports.until(
            lambda _: listener.closed_at, CLOSE_SECONDS, f"the close of port {listener.socket.port}"
        )

    async def end(self) -> int:
        """Let the script reach its end without stopping the context; return the exit code."""
        return await self._leave("end")

    async def throw(self) -> int:
        """Let the script raise; return the exit code."""
        return await self._leave("throw")

    async def exit(self, code: int = 0) -> int:
        """Let the script call sys.exit; return the exit code."""
        return await self._leave("exit", code=code)

    def kill(self, number: signal.Signals) -> None:
        """Send a signal to the JVM."""
        first = self.submission.launcher == "spark-submit"
        os.kill(self.pid if first else self.trace.context.jvm, number)

    async def exited(self) -> int:
        """Wait for the end of the driver and of its output; return the exit code (negative: the signal)."""
        try:
            async with asyncio.timeout(EXIT_SECONDS):
                return await asyncio.shield(self._exit)
        except TimeoutError:
            raise self._error(f"the driver has not ended within {EXIT_SECONDS:.0f} s") from None

    async def _leave(self, command: str, **values: object) -> int:
        await self._ask(command, **values)
        return await self.exited()

    async def _ask(self, command: str, **values: object) -> dict[str, Any]:
        asking = asyncio.create_task(self._control.ask(command, **values))
        try:
            await asyncio.wait({asking, self._exit}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
        except ControlError as error:
            raise self._error(str(error)) from error
        finally:
            asking.cancel()
        raise self._error(f"the driver ended ({self._exit.result()}) before it did {command!r}")

    def _error(self, what: str) -> DriverError:
        tail = "\n".join(f"    {line.text}" for line in self.trace.log[-TAIL_LINES:])
        return DriverError(f"Spark {self.submission.version}: {what}\n{tail}\n(log: {self.log_file})")

    async def _end(self) -> None:
        await launch.end(self._process)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(launch.REAP_SECONDS):
                await self._exit
        self._first.cancel()
        await asyncio.gather(self._first, return_exceptions=True)


def _meeting_place(folder: Path) -> Path:
    """Open a folder to the driver's user, who may be another one, and make the driver's own folder in it."""
    folder.chmod(0o755)
    (folder / "driver").mkdir()
    return folder


def _open_listener(listeners: Mapping[str, Listener], port: int) -> Listener | None:
    for listener in listeners.values():
        if listener.socket.port == port and listener.closed_at is None:
            return listener
    return None
