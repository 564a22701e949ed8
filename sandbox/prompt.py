"""Instants that do not depend on what else the machine does: the thread that takes them runs as soon as it is woken."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import Coroutine, Iterator
from typing import TypeVar

T = TypeVar("T")


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


def run_promptly(observation: Coroutine[object, object, T]) -> T:
    """Run an observation in a loop of its own, with nothing in the way that would make its instants late."""
    # a full collection holds the loop for tens of ms once much is loaded
    gc.collect()
    gc.freeze()
    with prompt():
        return asyncio.run(observation)
