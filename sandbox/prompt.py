"""Instants that do not depend on what else the machine does: the thread that takes them runs as soon as it is woken."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def prompt() -> Iterator[None]:
    """Schedule the calling thread ahead of all ordinary ones (sched(7), SCHED_RR); its children run as usual.

    For threads that mostly wait. Where it is not allowed (no CAP_SYS_NICE, or a cgroup without real-time share), the
    instants are as late as the machine is busy.
    """
    before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        yield
    finally:
        # taking it back needs no privilege
        os.sched_setscheduler(0, before & ~os.SCHED_RESET_ON_FORK, parameters)
