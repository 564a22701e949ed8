"""One driver from its start to its end, with its agent beside it or without."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.agent import Line
from sandbox.apiclient import Object
from sandbox.audit import Call
from sandbox.capture import Connection, capture
from sandbox.changes import Changes
from sandbox.control_plane import ControlPlane
from sandbox.page import Page, fetch
from sandbox.services import services
from sandbox.spark.driver import SparkDriver
from sandbox.spark.trace import Trace
from tests.spark.lives import ROUTED_SECONDS, Watched, agent_of, driver_of, watched


@dataclass(frozen=True)
class Used:
    """What a UI showed while it was up, and what the job computed."""

    jobs_page: Page
    applications: Page
    result: object


@dataclass(frozen=True)
class Work:
    """What a driver did, alike with an agent and without. ``jvm_ran_on``: after its context had stopped."""

    trace: Trace
    used: Used
    jvm_ran_on: bool
    exit_code: int


@dataclass(frozen=True)
class Record:
    """A life with an agent. Instants are CLOCK_MONOTONIC in ns.

    ``published_at`` and ``parked_at``: the slice came to lead to the UI, and to nothing; ``published`` is the slice between
    them, ``parked`` the Service at the end. ``calls``: all that the agent asked of the API server, by the server's audit
    log. ``observer`` is the address from which the harness connects.
    """

    application: str
    pod: Object
    ip: str
    observer: str
    service: str
    work: Work
    changes: Changes
    connections: Sequence[Connection]
    published_at: int
    published: Object
    parked_at: int
    parked: Object
    calls: Sequence[Call]
    log: Sequence[Line]
    exit_code: int

    @property
    def trace(self) -> Trace:
        """The driver's trace."""
        return self.work.trace


async def live_alone(plane: ControlPlane, version: str) -> Work:
    """Live without an agent."""
    async with watched(plane) as seen, driver_of(seen.scene, version) as driver:
        await driver.ui_bound()
        used = await _use(seen, driver)
        await driver.stop_context()
        return await _end(driver, used)


async def live(plane: ControlPlane, version: str) -> Record:
    """Live with an agent, which is there before the driver and leaves when the context has stopped."""
    async with contextlib.AsyncExitStack() as stack:
        seen = await stack.enter_async_context(watched(plane))
        scene, changes = seen.scene, seen.changes
        captured = await stack.enter_async_context(capture(seen.network))
        agent = await stack.enter_async_context(agent_of(scene))
        driver = await stack.enter_async_context(driver_of(scene, version))
        route = (scene.place.ip, await driver.ui_bound())
        published_at = await changes.until_routed(scene.service, {route}, ROUTED_SECONDS)
        published = changes.slices[-1].object
        await agent.state("published")
        used = await _use(seen, driver)
        await driver.stop_context()
        parked_at = await changes.until_routed(scene.service, set())
        await agent.state("parked")
        exit_code = await agent.terminate()
        parked = (await scene.api.request("GET", services(scene.namespace, scene.service))).ok()
        work = await _end(driver, used)
        return Record(
            application=scene.application,
            pod=scene.pod,
            ip=scene.place.ip,
            observer=seen.network.observer,
            service=scene.service,
            work=work,
            changes=changes,
            connections=captured.connections(),
            published_at=published_at,
            published=published,
            parked_at=parked_at,
            parked=parked,
            calls=await plane.audit(scene.user),
            log=tuple(agent.lines),
            exit_code=exit_code,
        )


async def _use(seen: Watched, driver: SparkDriver) -> Used:
    port, host = driver.trace.ui_port, seen.scene.place.ip
    return Used(
        jobs_page=await fetch(seen.network, port, "/jobs/", host=host),
        applications=await fetch(seen.network, port, "/api/v1/applications", host=host),
        result=await driver.result(),
    )


async def _end(driver: SparkDriver, used: Used) -> Work:
    ran_on = driver.trace.exit_code is None and _runs(driver.trace.context.jvm)
    return Work(driver.trace, used, ran_on, await driver.end())


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
