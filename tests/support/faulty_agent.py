"""The agent with a defect, which shows at SIGUSR1 in the first of its lives; the variable FAULT says which one.

``part``: the part that sends Events fails. ``tell``: who tells people of a change fails at the next one. ``signal``: as
``part``, and SIGTERM comes when that life has just ended.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from contextlib import ExitStack
from unittest.mock import patch

from agent.__main__ import main
from agent.app import App
from agent.model import Status
from agent.tell.announcer import Announcer
from agent.tell.events import Events

FAULT = os.environ.get("FAULT", "part")
send, announce, live = Events.run, Announcer.tell, App.run
lives = itertools.count(1)
shows = asyncio.Event()


async def sending(self: Events) -> None:
    """Do as the real one does until the signal comes."""
    if next(lives) > 1:
        await send(self)
        return
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, shows.set)
    real = asyncio.create_task(send(self))
    await shows.wait()
    if FAULT == "tell":
        await real
    real.cancel()
    raise ZeroDivisionError("a defect")


def announcing(self: Announcer, status: Status) -> None:
    """Fail once."""
    if FAULT == "tell" and shows.is_set():
        shows.clear()
        raise ZeroDivisionError("a defect")
    announce(self, status)


async def living(self: App) -> bool:
    """Get a signal in the last moment."""
    again = await live(self)
    if FAULT == "signal":
        os.kill(os.getpid(), signal.SIGTERM)
    return again


if __name__ == "__main__":
    with ExitStack() as stack:
        stack.enter_context(patch.object(Events, "run", sending))
        stack.enter_context(patch.object(Announcer, "tell", announcing))
        stack.enter_context(patch.object(App, "run", living))
        sys.exit(main())
