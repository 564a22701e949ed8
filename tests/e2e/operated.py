"""A job as an operator submits it, from the driver that runs to the end of its Pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.apiclient import Object
from sandbox.changes import Change, Routed
from sandbox.page import Page
from tests.e2e.lives import EXPOSED, end, stopping
from tests.e2e.scene import Ending, Scene

STEPS = ("context:0", "result", "await:stop", "stop", "await:end")


@dataclass(frozen=True)
class Operated:
    """What came of the job. Instants are CLOCK_MONOTONIC in nanoseconds.

    ``pod`` is the driver Pod while it ran. ``page`` came through the Service's address; ``status`` is what the agent said of
    itself meanwhile. ``parked`` is when the last route was gone, ``closed`` when the UI's socket was. ``services`` are the
    events of the one that the agent kept, ``names`` those of all in the namespace.
    """

    pod: Object
    port: int
    page: Page
    status: Object
    parked: int
    closed: int
    routed: Sequence[Routed]
    services: Sequence[Change]
    names: frozenset[str]
    log: Sequence[str]
    ending: Ending

    @property
    def route(self) -> tuple[str, int]:
        """Where the UI was."""
        return self.pod["status"]["podIP"], self.port


async def operated(scene: Scene) -> Operated:
    """Let a job of `STEPS` be served, stop its context, and end."""
    pod = await scene.driver.until("Running")
    address = str(pod["status"]["podIP"])
    await scene.driver.until_step("result")
    port = await scene.routed(address)
    host = (await scene.kept())["spec"]["clusterIP"]
    page = await scene.cluster.first_page(host, EXPOSED, "/jobs/")
    status = await scene.agent_status()
    parked, closed = await stopping(scene, address, port)
    await end(scene)
    ending = await scene.ended()
    return Operated(
        pod=pod,
        port=port,
        page=page,
        status=status,
        parked=parked,
        closed=closed,
        routed=scene.seen.routed(scene.service),
        services=scene.seen.of_service(scene.service),
        names=frozenset(change.name for change in scene.seen.services),
        log=await scene.driver.log(),
        ending=ending,
    )
