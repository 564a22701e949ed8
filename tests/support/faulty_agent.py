"""The agent with a defect: the part that sends Events fails at SIGUSR1, in the first of its lives alone."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
from unittest.mock import patch

from agent.__main__ import main
from agent.tell.events import Events

real = Events.run
lives = itertools.count(1)


async def failing(self: Events) -> None:
    """Do as the real one does until the signal comes."""
    if next(lives) > 1:
        await real(self)
        return
    signalled = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, signalled.set)
    sending = asyncio.create_task(real(self))
    await signalled.wait()
    sending.cancel()
    raise ZeroDivisionError("a defect")


if __name__ == "__main__":
    with patch.object(Events, "run", failing):
        sys.exit(main())
