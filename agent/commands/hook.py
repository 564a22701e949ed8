"""`install-hook`: for postStart and init containers, where any other exit code than 0 would hold the Pod back.

kubelet says Ready of a Pod, and so gives its endpoints back, only after postStart: it is the place where a restarted
agent can see to the Service first. The driver has long been running then.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn

from .. import times
from ..settings import SettingsError, load
from . import DONE, complain


class TooLongError(Exception):
    """Time is up. No OSError, of which TimeoutError is one: the writing of files takes those for its own."""


class NeverFails:
    """Turns any error into one line on stderr: without the hook the agent still finds the UI by itself."""

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_REAL, times.INSTALL)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if not isinstance(error, Exception):
            return False
        complain(
            f"no log hook: {type(error).__name__}: {error}; the UI is found by its listening socket instead"
        )
        return True


def _too_long(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TooLongError(f"not done within {times.INSTALL:g} s")


def install_hook(env: Mapping[str, str]) -> int:
    """Writes the files; always 0. With bad settings the driver gets its logging as it is, without the hook."""
    with NeverFails():
        from ..act.volume import had_a_ui, install

        try:
            settings = load(env)
        except SettingsError as error:
            for problem in error.problems:
                complain(problem)
            settings = replace(error.settings, hook="off")
        for line in install(settings).said:
            complain(line)
        # An init container runs before the agent, and is process 1 itself.
        if os.getpid() != 1 and had_a_ui(settings.dir) and not _settled(settings.control_socket):
            complain(f"the restarted agent has not seen to the Service within {times.SETTLED:g} s")
    return DONE


def _settled(path: Path) -> bool:
    """Wait until the agent beside this process has made the Service what it is to be; False where that takes too long."""
    from ..tell.client import NoAgentError, RefusedError, ask

    deadline = time.monotonic() + times.SETTLED
    while (left := deadline - time.monotonic()) > 0:
        try:
            return ask(path, "settled", left)["settled"] is True
        except NoAgentError:
            time.sleep(times.SETTLED_POLL)
        except (RefusedError, TimeoutError):
            return False
    return False
