"""`run`: the agent itself. In a Pod it never exits non-zero: a plain sidecar's failure would fail the driver's Pod."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

from .. import times
from ..act.volume import Installed, install
from ..sense.signals import Signals
from ..settings import Settings, SettingsError, load
from . import DONE
from .hook import NeverFails


def start(env: Mapping[str, str], written: Callable[[], None]) -> int:
    """Runs until the driver has ended or a signal came; 0 whatever happened.

    Calls `written` once the hook's files stand, or won't by this process.
    """
    signals = Signals(_leave)
    settings: Settings | SettingsError
    try:
        settings = load(env)
        usable = settings
    except SettingsError as error:
        settings, usable = error, error.settings

    gc.disable()  # the imports make no garbage; collecting meanwhile costs a tenth of the start
    installed = _install(settings)
    written()
    import asyncio

    from ..tell import logs

    logger = logs.configure(usable.log_level, usable.log_format)
    try:
        from .. import app
    except Exception:
        logger.exception("the agent failed", remedy=logs.REPORT)
        return DONE

    gc.enable()
    failed = 0
    while True:
        began, again = time.monotonic(), True
        try:
            again = asyncio.run(app.run(settings, logger, installed, signals))
        except Exception:
            logger.exception("the agent failed", remedy=logs.REPORT)
        failed = 0 if time.monotonic() - began > times.RESTART_CALM else failed + 1
        if not again or signals.came or failed == times.RESTARTS:
            break
        signals.deliver = _leave
        gc.unfreeze()
        gc.collect()
        time.sleep(times.RESTART * 2**failed)
        installed = _install(settings)
    signals.ignore()
    return DONE


def _install(settings: Settings | SettingsError) -> Installed:
    """Write the hook's files before the imports, which take seconds under a small CPU limit: a driver waits for them."""
    installed = Installed.nothing()
    with NeverFails():
        # wrong settings may be wrong about the files, too; `install-hook` does what is safe with them
        if isinstance(settings, Settings):
            installed = install(settings)
    return installed


def _leave(_name: str) -> NoReturn:
    """While no loop runs the Service is parked, or as a former life left it: nothing is to be done."""
    Signals.ignore()
    sys.exit(DONE)
