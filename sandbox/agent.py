"""The agent as a process of its own, as kubelet would start it: environment in, JSON log lines out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sandbox import launch
from sandbox.netns import NetworkNamespace

PYTHON = Path(sys.executable)
LINE_SECONDS = 60.0


@dataclass(frozen=True)
class Place:
    """What the downward API and kubelet tell the agent: its Pod, and where the API server is.

    ``url`` is the API server as seen from the agent's network; ``token_file`` and ``ca_file`` are its credentials.
    """

    pod: str
    uid: str
    namespace: str
    application: str
    url: str
    token_file: Path
    ca_file: Path
    ip: str = "127.0.0.1"
    host_ip: str = "192.0.2.1"
    settings: Mapping[str, str] = field(default_factory=dict)

    def env(self, directory: Path) -> dict[str, str]:
        """The agent's whole environment; ``settings`` are names after the prefix."""
        address = urlsplit(self.url)
        plain = address.scheme == "http"
        own = {
            "DIR": str(directory),
            "TOKEN_FILE": str(self.token_file),
            "CA_FILE": str(self.ca_file),
            "HEALTH_ADDRESS": "127.0.0.1:0",
            "LOG_FORMAT": "json",
            **self.settings,
        }
        return {
            "PATH": os.defpath,
            "PYTHONDONTWRITEBYTECODE": "1",
            "POD_NAME": self.pod,
            "POD_UID": self.uid,
            "POD_NAMESPACE": self.namespace,
            "POD_IP": self.ip,
            "POD_IPS": self.ip,
            "HOST_IP": self.host_ip,
            "SPARK_APPLICATION_ID": self.application,
            "KUBERNETES_SERVICE_HOST": self.url if plain else str(address.hostname),
            "KUBERNETES_SERVICE_PORT": str(address.port or 443),
            **{f"SPARK_UI_AGENT_{name}": value for name, value in own.items()},
        }


@dataclass(frozen=True)
class Line:
    """One line of the agent's log and when it arrived (CLOCK_MONOTONIC, ns)."""

    at: int
    fields: Mapping[str, Any]
    text: str

    @property
    def event(self) -> str:
        """The line's message; for a change of state, the state's name."""
        return str(self.fields.get("event", ""))


@dataclass(frozen=True)
class Finished:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


class AgentError(Exception):
    """The agent did not do what was awaited. The message ends with its log."""


class AgentProcess:
    """A running agent; made by `start`."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        place: Place,
        directory: Path,
        start: Callable[..., Awaitable[asyncio.subprocess.Process]],
    ) -> None:
        self.pid = process.pid
        self.place = place
        self.directory = directory
        self._start = start
        self.lines: list[Line] = []
        self._process = process
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls,
        place: Place,
        directory: Path,
        *,
        network: NetworkNamespace | None = None,
        uid: int | None = None,
        python: Path = PYTHON,
        module: str = "agent",
        env: Mapping[str, str] | None = None,
    ) -> AsyncIterator[AgentProcess]:
        """Start ``spark-ui-agent run``; ``directory`` is its DIR. Killed when the block ends.

        ``module`` is what ``python -m`` runs: another one may change the agent before it starts.
        """
        start = partial(
            launch.start,
            env={**place.env(directory), "PYTHONPATH": str(launch.REPOSITORY), **(env or {})},
            namespace_fd=None if network is None else network.fd,
            uid=uid,
            reads=[python.parent.parent, launch.REPOSITORY, directory, place.token_file, place.ca_file],
            cwd=directory,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        process = await start([str(python), "-m", module, "run"])
        agent = cls(process, place, directory, partial(start, stdout=asyncio.subprocess.PIPE))
        try:
            yield agent
        finally:
            await launch.end(process)
            await agent._reading

    async def line(self, wanted: Callable[[Line], bool], what: str, within: float = LINE_SECONDS) -> Line:
        """Wait for the first line that is ``wanted``, past ones included."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within), self._news:
                while True:
                    found = next((line for line in self.lines if wanted(line)), None)
                    if found is not None:
                        return found
                    if self._reading.done():
                        break
                    await self._news.wait()
        raise AgentError(
            f"no line '{what}' from the agent; its log:\n" + "\n".join(one.text for one in self.lines)
        )

    async def state(self, name: str, within: float = LINE_SECONDS, **fields: object) -> Line:
        """Wait for the agent to enter the state ``name`` (with ``fields`` as given)."""
        return await self.line(
            lambda line: (
                line.event == name and all(line.fields.get(key) == value for key, value in fields.items())
            ),
            f"{name} {fields or ''}",
            within,
        )

    async def command(self, *arguments: str, within: float = LINE_SECONDS) -> Finished:
        """Run ``spark-ui-agent`` with these arguments as ``kubectl exec`` would: in this agent's place, as its user."""
        process = await self._start([str(PYTHON), "-m", "agent", *arguments])
        try:
            async with asyncio.timeout(within):
                out, err = await process.communicate()
        finally:
            await launch.end(process)
        return Finished(process.returncode or 0, out.decode(), err.decode())

    def kill(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    async def terminate(self, within: float = LINE_SECONDS) -> int:
        """Send SIGTERM and return the exit code."""
        with contextlib.suppress(ProcessLookupError):
            self.kill(signal.SIGTERM)
        return await self.exited(within)

    async def exited(self, within: float = LINE_SECONDS) -> int:
        """Wait for the agent's own end and return the exit code."""
        try:
            async with asyncio.timeout(within):
                return await self._process.wait()
        except TimeoutError:
            log = "\n".join(line.text for line in self.lines)
            raise AgentError(f"the agent has not ended within {within:g} s; its log:\n{log}") from None

    async def _read(self) -> None:
        if self._process.stderr is None:
            raise ValueError("the process has no pipe for its log")
        async for raw in self._process.stderr:
            text = raw.decode(errors="replace").rstrip("\n")
            try:
                fields = json.loads(text)
            except ValueError:
                fields = {}
            async with self._news:
                self.lines.append(Line(time.monotonic_ns(), fields if isinstance(fields, dict) else {}, text))
                self._news.notify_all()
        async with self._news:
            self._news.notify_all()
