"""Daemons that live and die together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from sandbox.die_with_parent import die_with_parent
from sandbox.progress import tail

T = TypeVar("T")


class DaemonError(Exception):
    """A daemon ended by itself. The message has its exit status and the end of its log."""


class Daemons:
    """Daemons that are all killed when the context is left, and by the kernel when this process dies.

    They are killed, not asked to stop: nothing that they keep outlives them.
    """

    def __init__(self) -> None:
        self._watched: list[asyncio.Task[None]] = []
        self._processes: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        for task in self._watched:
            with contextlib.suppress(DaemonError):
                await task

    async def start(self, argv: Sequence[str | Path], log: Path) -> None:
        """Start a daemon that writes to ``log``; call it from the main thread (see `die_with_parent`)."""
        with log.open("ab") as output:
            # a process group of its own, as Ctrl-C on a terminal would reach it before us
            process = await asyncio.create_subprocess_exec(
                *die_with_parent(argv),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
            )
        self._processes.append(process)
        self._watched.append(asyncio.create_task(_ended(process, Path(argv[0]).name, log)))

    async def meanwhile(self, work: Coroutine[None, None, T]) -> T:
        """Return what ``work`` returns; raise `DaemonError` as soon as a daemon ends before it."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait([task, *self._watched], return_when=asyncio.FIRST_COMPLETED)
            for watched in self._watched:
                if watched.done():
                    await watched
            return await task
        finally:
            task.cancel()


async def _ended(process: asyncio.subprocess.Process, name: str, log: Path) -> None:
    status = await process.wait()
    raise DaemonError(f"{name} ended with {status}:\n{tail(log)}")
