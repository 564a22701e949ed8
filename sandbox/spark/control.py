"""The harness's end of the connection to `life`: one question at a time, answers with their instants."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

# Starting a context takes 15-25 s on two cores; several drivers at once share them.
ANSWER_SECONDS = 180.0


class ControlError(Exception):
    """The script failed, went away, or did not answer in time. The message says which, and to what."""


class Control:
    """A listening Unix socket for one script. Answers are plain JSON objects, as `life` makes them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._streams: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
            asyncio.get_running_loop().create_future()
        )
        self._asking = asyncio.Lock()
        self._greeted = False

    @classmethod
    @contextlib.asynccontextmanager
    async def listen(cls, path: Path) -> AsyncIterator[Control]:
        """Listen at ``path`` (107 bytes at most, unix(7)) for the one script that will connect."""
        with _bound(path) as bound:
            control = cls(path)
            server = await asyncio.start_unix_server(control._accept, sock=bound)
            try:
                yield control
            finally:
                server.close()
                control._close()

    async def ask(self, command: str, **values: object) -> dict[str, Any]:
        """Send a command and return its answer. Raises `ControlError`."""
        async with self._asking:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    reader, writer = await asyncio.shield(self._streams)
                    if not self._greeted:
                        await self._answer(reader, "hello")
                        self._greeted = True
                    writer.write(json.dumps({"command": command, **values}).encode() + b"\n")
                    await writer.drain()
                    return await self._answer(reader, command)
            except TimeoutError:
                raise ControlError(f"no answer to {command!r} within {ANSWER_SECONDS:.0f} s") from None
            except ConnectionError as error:
                raise ControlError(f"the script went away before it answered {command!r}: {error}") from None

    async def _answer(self, reader: asyncio.StreamReader, command: str) -> dict[str, Any]:
        line = await reader.readline()
        if not line:
            raise ControlError(f"the script ended before it answered {command!r}")
        answer: dict[str, Any] = json.loads(line)
        if answer["answer"] != command:
            raise ControlError(f"asked for {command!r}, the script says: {answer}")
        return answer

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._streams.set_result((reader, writer))

    def _close(self) -> None:
        if self._streams.done():
            self._streams.result()[1].close()
        else:
            self._streams.cancel()


@contextlib.contextmanager
def _bound(path: Path) -> Iterator[socket.socket]:
    """Bind a Unix socket that any user may connect to; a file, so it is seen from every network namespace."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        path.chmod(0o666)
        yield bound
