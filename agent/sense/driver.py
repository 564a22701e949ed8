"""Has the driver ended? Read from our own Pod once the driver's sockets say that it may have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from .. import times
from ..decide.lifecycle import driver_listens, ended, shows_driver
from ..model import ApiError, DriverEnded, Fact, NotFoundError, World
from ..settings import Settings


class DriverWatch:
    """Tells `DriverEnded` once. Reads the Pod only while none of the driver's sockets listens, or after SIGTERM.

    `ours` are the inodes of the agent's own listening sockets, which may have the driver's uid.
    """

    def __init__(
        self,
        get_pod: Callable[[], Awaitable[Mapping[str, object]]],
        tell: Callable[[Fact], None],
        view: Callable[[], World],
        settings: Settings,
        ours: Callable[[], frozenset[int]],
        *,
        seen: bool = False,
    ) -> None:
        self._get_pod = get_pod
        self._tell = tell
        self._view = view
        self._settings = settings
        self._ours = ours
        self._woken = asyncio.Event()
        self._seen = seen  # a socket of the driver's has listened, in this life of the agent or a former one
        self._quiet_since: float | None = None
        self._blind_since: float | None = None
        self._read_at: float | None = None
        # A native sidecar gets SIGTERM when the driver has ended; nobody tells a plain one.
        self._slowest = times.END_POLL_MAX if settings.mode == "plain" else times.DRIFT

    def wake(self) -> None:
        """The World has changed: look at it again."""
        self._woken.set()

    async def run(self) -> None:
        """Until the driver is known to have ended."""
        loop = asyncio.get_running_loop()
        while self._view().ended is None:
            due = self._due(loop.time())
            if due is not None and due <= loop.time():
                self._read_at = loop.time()
                await self.look()
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._woken.wait()
            self._woken.clear()

    async def look(self) -> None:
        """Reads our Pod now and tells what follows from it."""
        try:
            pod = await self._get_pod()
        except NotFoundError:
            self._tell(DriverEnded("the Pod is gone"))
            return
        except ApiError:
            self._blind()
            return
        why = ended(pod, self._settings)
        if why is not None:
            self._tell(DriverEnded(why))
        elif shows_driver(pod, self._settings):
            self._blind_since = None
        else:
            self._blind()

    def _due(self, now: float) -> float | None:
        """When the Pod is to be read next (loop time); None: not before the World changes."""
        world = self._view()
        if not self._quiet(world):
            self._quiet_since = None
        elif self._quiet_since is None:
            self._quiet_since = now
        if world.leaving:
            return now if self._read_at is None else self._read_at + times.END_POLL_ENDING
        if self._quiet_since is None:
            if self._settings.mode != "plain" or world.proven or not world.served:
                return None
            # Another container may run under the driver's uid: its sockets then say nothing of the driver.
            if self._read_at is None:
                self._read_at = now
            return self._read_at + times.PLAIN_POLL
        if self._read_at is None or self._read_at < self._quiet_since:
            return self._quiet_since + times.END_POLL_MIN  # the sockets go a moment before their process
        # Twice as long each time: next at twice the time since the beginning of the silence.
        pace = min(self._read_at - self._quiet_since, self._slowest)
        return self._read_at + max(pace, times.END_POLL_MIN)

    def _quiet(self, world: World) -> bool:
        if not world.scanned:
            return False
        alive = driver_listens(world, self._settings, self._ours())
        self._seen = self._seen or alive
        return not alive

    def _blind(self) -> None:
        """The Pod can't be read, or does not show the driver: its silence has to do, where someone waits for us."""
        now = asyncio.get_running_loop().time()
        if self._blind_since is None:
            self._blind_since = now
        if self._settings.mode != "plain" or self._quiet_since is None:
            return
        bound = times.BLIND_END if self._seen else times.BLIND_START
        if now - max(self._quiet_since, self._blind_since) >= bound:
            self._tell(DriverEnded(f"no socket of the driver's has listened for {bound:.0f} s"))
