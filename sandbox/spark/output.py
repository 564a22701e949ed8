"""A driver's output as it arrives, into its trace and a file, up to its exit."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TextIO

from sandbox.spark.trace import LogLine, Trace

# the longest line is a stack frame or a dumped configuration
LONGEST_LINE = 1 << 20


async def follow(process: asyncio.subprocess.Process, trace: Trace, file: Path) -> int:
    """Take both streams in until they end, note the exit in ``trace``, and return its code (negative: the signal).

    The process must have been started with pipes and ``limit=LONGEST_LINE``.
    """
    with file.open("w", buffering=1) as log:
        async with asyncio.TaskGroup() as group:
            for stream, lines in (("stdout", process.stdout), ("stderr", process.stderr)):
                if lines is not None:
                    group.create_task(_pump(stream, lines, trace, log))
            trace.exit_code = await process.wait()
            trace.exited_at = time.monotonic_ns()
    return trace.exit_code


async def _pump(stream: str, lines: asyncio.StreamReader, trace: Trace, log: TextIO) -> None:
    async for line in lines:
        text = line.decode(errors="replace").rstrip("\n")
        trace.log.append(LogLine(time.monotonic_ns(), stream, text))
        log.write(f"{text}\n")
