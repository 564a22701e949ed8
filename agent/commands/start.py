"""`run`: the agent itself. In a Pod it never exits non-zero: a plain sidecar's failure would fail the driver's Pod."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Mapping
from types import FrameType
from typing import NoReturn

from ..act.volume import Installed, install
from ..settings import Settings, SettingsError, load
from . import DONE
from .hook import NeverFails


def start(env: Mapping[str, str]) -> int:
    """Runs until the driver has ended or a signal came; 0 whatever happened."""
    # As process 1 of a container, a SIGTERM without a handler would be lost while the imports run.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
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
        asyncio.run(app.run(settings, logger, installed))
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


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    """Before the loop has its own handlers this life has done nothing; what a former one left the next one mends."""
    sys.exit(DONE)
