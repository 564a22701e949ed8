"""What was observed of one driver. Every instant is CLOCK_MONOTONIC in nanoseconds (`time.monotonic_ns`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sandbox.spark.sockdiag import Socket


@dataclass
class Listener:
    """A listening socket of the namespace: first seen in LISTEN, and destroyed (None: still there).

    ``seen_at`` is at most some 5 ms after listen(). ``closed_at`` is when the kernel's destroy event was read: in
    the median 0.03 ms after close(), 2.3 ms at the most in 200 closes on two busy cores.
    """

    socket: Socket
    seen_at: int
    closed_at: int | None = None


@dataclass(frozen=True)
class LogLine:
    """One line of the driver's stdout or stderr, with the time of its arrival at the harness."""

    at: int
    stream: str
    text: str


@dataclass
class Context:
    """One SparkContext as it told itself: id, UI address as Spark has it, and the ports of its other listeners.

    ``ready_at``: SparkContext's constructor had returned. ``stop_requested_at`` and ``stopped_at`` enclose
    the call of stop(). ``listener`` is the UI's socket; None while not seen, or where there is no UI.
    """

    application: str
    url: str | None
    jvm: int
    python: int
    rpc: int
    block_manager: int
    py4j: int
    accumulator: int
    ready_at: int
    listener: Listener | None = None
    stop_requested_at: int | None = None
    stopped_at: int | None = None

    @property
    def port(self) -> int:
        """The port that serves the UI (under TLS the secure one). Raises `LookupError` without a UI."""
        found = urlsplit(self.url).port if self.url else None
        if found is None:
            raise LookupError(f"{self.application} has no UI")
        return int(found)

    @property
    def scheme(self) -> str:
        """``http`` or ``https``. Raises `LookupError` without a UI."""
        if self.url is None:
            raise LookupError(f"{self.application} has no UI")
        return urlsplit(self.url).scheme


@dataclass
class Trace:
    """One driver's life. The shortcuts speak of the newest context and raise `LookupError` before its time."""

    started_at: int = 0
    exited_at: int | None = None
    exit_code: int | None = None
    contexts: list[Context] = field(default_factory=list)
    listeners: dict[str, Listener] = field(default_factory=dict)
    results: list[tuple[int, object]] = field(default_factory=list)
    log: list[LogLine] = field(default_factory=list)

    @property
    def context(self) -> Context:
        """The newest context."""
        if not self.contexts:
            raise LookupError("no SparkContext has started")
        return self.contexts[-1]

    @property
    def application(self) -> str:
        """The application id, which is also the id in the UI's REST answer."""
        return self.context.application

    @property
    def ui_port(self) -> int:
        """The port of the UI."""
        return self.context.port

    @property
    def scheme(self) -> str:
        """The scheme of the UI."""
        return self.context.scheme

    @property
    def bound_at(self) -> int:
        """When the UI's port was first seen in LISTEN."""
        return self._listener().seen_at

    @property
    def closed_at(self) -> int:
        """When the kernel announced that the UI's listening socket is gone."""
        closed = self._listener().closed_at
        if closed is None:
            raise LookupError("the UI's port is still open")
        return closed

    def lines(self, stream: str = "stderr") -> list[str]:
        """The log so far, without times."""
        return [line.text for line in self.log if line.stream == stream]

    def _listener(self) -> Listener:
        listener = self.context.listener
        if listener is None:
            raise LookupError("the UI's listening socket has not been seen")
        return listener
