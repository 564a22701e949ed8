"""`run`: the agent itself. In a Pod it never exits non-zero: a plain sidecar's failure would fail the driver's Pod."""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import NoReturn

from .. import times
from ..act.volume import Installed, install
from ..settings import Settings, SettingsError, load
from . import DONE
from .hook import NeverFails


def start(env: Mapping[str, str]) -> int:
    """Runs until the driver has ended or a signal came; 0 whatever happened."""
    _leave_at_signals()
    settings: Settings | SettingsError
    try:
        settings = load(env)
        usable = settings
    except SettingsError as error:
        settings, usable = error, error.settings

    gc.disable()  # the imports make no garbage; collecting meanwhile costs a tenth of the start
    installed = _install(settings)
    import asyncio

    from ..tell import logs

    logger = logs.configure(usable.log_level, usable.log_format)
    try:
        from .. import app

        gc.enable()
        failed, began = 0, time.monotonic()
        while asyncio.run(app.run(settings, logger, installed)):
            failed = 0 if time.monotonic() - began > times.RESTART_CALM else failed + 1
            if failed == times.RESTARTS:
                break
            # the loop has given the signals back to Python, and so to nobody
            _leave_at_signals()
            time.sleep(times.RESTART * 2**failed)
            installed, began = _install(settings), time.monotonic()
    except Exception:
        logger.exception("the agent failed", remedy="please report this; the driver is not affected")
    return DONE


def _install(settings: Settings | SettingsError) -> Installed:
    """Write the hook's files before the imports, which take seconds under a small CPU limit: a driver waits for them."""
    installed = Installed.nothing()
    with NeverFails():
        # wrong settings may be wrong about the files, too; `install-hook` does what is safe with them
        if isinstance(settings, Settings):
            installed = install(settings)
    return installed


def _leave_at_signals() -> None:
    """As process 1 of a container, a SIGTERM without a handler would be lost while no loop runs."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    """While no loop runs the Service is parked, or as a former life left it: nothing is to be done."""
    sys.exit(DONE)
