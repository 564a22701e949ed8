"""Values and helpers that the tests of settings, telling and commands share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from agent.model import State, Status
from agent.settings import PREFIX, Settings, load

ENV: Mapping[str, str] = {
    "POD_NAME": "etl-driver",
    "POD_NAMESPACE": "team",
    "POD_UID": "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
    "POD_IP": "10.1.0.1",
    "HOST_IP": "192.0.2.1",
    "SPARK_APPLICATION_ID": "spark-aaa",
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
}

WAITING = Status(
    state=State.WAITING,
    reason="searching",
    found="no UI of this driver is bound",
    remedy="none needed",
    port=None,
    scheme=None,
    application="spark-aaa",
    proof=None,
    hook="waiting",
    service="etl-ui",
)
PUBLISHED = replace(
    WAITING, state=State.PUBLISHED, reason="", found="", remedy="", port=40123, scheme="http", proof="rest"
)
PARKED = replace(WAITING, state=State.PARKED, reason="stopped", found="the UI of this driver has closed")
BLOCKED = replace(
    WAITING,
    state=State.BLOCKED,
    reason="rbac",
    found="403 Forbidden: patch services",
    remedy="add the verb patch",
)


def made(**changes: str) -> Settings:
    """Settings of ENV with `changes`: names after the prefix."""
    return load({**ENV, **{PREFIX + name: value for name, value in changes.items()}})


@asynccontextmanager
async def running(part: Coroutine[object, object, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Runs `part` meanwhile, then cancels it and waits for its end; what it raises comes out."""
    task = asyncio.ensure_future(part)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def turns(number: int) -> None:
    """Lets the loop go round: a part that only waits for its next turn has gone on by then."""
    for _ in range(number):
        await asyncio.sleep(0)
