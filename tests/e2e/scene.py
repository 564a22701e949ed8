"""One job on the node in a namespace of its own, what happens to its Service, and how it ended."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.apiclient import ApiError, Object
from sandbox.changes import Changes, recording
from sandbox.node.cluster import Cluster
from sandbox.node.containers import exit_of, main_process, terminated
from sandbox.node.steps import steps_of
from sandbox.node.submit import SUBMIT_SECONDS, Job, Submitted, create_spark_namespace, submitted
from sandbox.node.templates import AGENT_CONTAINER, rendered, write_template
from sandbox.pods import DRIVER_CONTAINER, delete_pod, pods
from sandbox.services import services
from sandbox.waiting import wait_until

Adjust = Callable[[Object], None]

# from a Pod that runs to its slice: a JVM that starts on a busy machine
ROUTED_SECONDS = 150.0
GONE_SECONDS = 60.0
LAST_LINES = 30


@dataclass(frozen=True)
class Ending:
    """How a job ended: the Pod's phase, the driver container's exit code and reason, what came of each step."""

    phase: str
    exit_code: int
    reason: str
    steps: Mapping[str, str]


async def ending(cluster: Cluster, pod: Object) -> Ending:
    """Return how the job of a driver Pod that is Succeeded or Failed has ended."""
    how = terminated(pod, DRIVER_CONTAINER)
    lines = await cluster.logs(pod["metadata"]["namespace"], pod["metadata"]["name"], DRIVER_CONTAINER)
    return Ending(pod["status"]["phase"], how["exitCode"], how["reason"], steps_of(lines))


@dataclass(frozen=True)
class Plan:
    """What is submitted. ``variant`` is a folder below deploy/, none without the agent; ``adjust`` changes its Pod.

    ``labels`` are the namespace's. ``service`` is the one that the agent keeps, where it does not name it itself.
    """

    name: str
    steps: Sequence[str]
    variant: str = ""
    adjust: Adjust | None = None
    executors: int = 0
    conf: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    service: str = ""


@dataclass(frozen=True)
class Scene:
    """A submitted job, and all that happens to the Services and slices of its namespace.

    ``service`` is the name of the one that the agent keeps.
    """

    cluster: Cluster
    namespace: str
    seen: Changes
    driver: Submitted
    service: str

    async def running(self, within: float = SUBMIT_SECONDS) -> str:
        """Wait until the driver Pod runs; return its address."""
        pod = await self.driver.until("Running", within=within)
        return str(pod["status"]["podIP"])

    async def routed(self, address: str, within: float = ROUTED_SECONDS) -> int:
        """Wait until the Service leads to the Pod of this address; return the port that it leads to."""
        await self.seen.until(
            lambda seen: {host for host, _ in seen.leads_to(self.service)} == {address}, within
        )
        ((_, port),) = self.seen.leads_to(self.service)
        return port

    async def kept(self) -> Object:
        """Return the Service."""
        path = services(self.namespace, self.service)
        return (await self.cluster.admin.request("GET", path)).ok()

    async def ended(self) -> Ending:
        """Wait for the end of the job."""
        return await ending(self.cluster, await self.driver.until("Succeeded", "Failed"))

    async def lingering(self) -> float:
        """Wait for the end of a job that runs; return for how long (seconds) its Pod outlived the driver."""
        pod = await self.driver.until("Running")
        with exit_of(main_process(pod, DRIVER_CONTAINER)) as exited:
            await self.driver.until("Succeeded", "Failed")
            return time.monotonic() - await exited

    async def agent_log(self) -> list[str]:
        """Return the agent's log lines."""
        return await self.driver.log(AGENT_CONTAINER)

    async def agent_status(self) -> Object:
        """Return what the agent says of itself."""
        return await agent_status(self.cluster, self.namespace, self.driver.pod)

    async def until_gone(self) -> None:
        """Wait until the driver Pod is no object of the API server any more."""
        only = {"fieldSelector": f"metadata.name={self.driver.pod}"}
        path = pods(self.namespace)
        await wait_until(self.cluster.admin, path, lambda found: not found, params=only, within=GONE_SECONDS)


async def agent_status(cluster: Cluster, namespace: str, pod: str) -> Object:
    """Return what the agent in a Pod says of itself: ``status --json``."""
    status: Object = json.loads(
        await cluster.execute(namespace, pod, AGENT_CONTAINER, ["spark-ui-agent", "status", "--json"])
    )
    return status


@contextlib.asynccontextmanager
async def played(cluster: Cluster, plan: Plan) -> AsyncIterator[Scene]:
    """Submit a job and watch it while the block lasts; what fails inside is told with the last log lines."""
    namespace = f"{plan.name}-{uuid.uuid4().hex[:6]}"
    await create_spark_namespace(cluster, namespace, plan.labels)
    async with (
        recording(cluster.admin, namespace) as seen,
        played_in(cluster, plan, namespace, seen) as scene,
    ):
        yield scene


@contextlib.asynccontextmanager
async def played_in(cluster: Cluster, plan: Plan, namespace: str, seen: Changes) -> AsyncIterator[Scene]:
    """Submit a job into a namespace that is there and recorded; see `played`."""
    with tempfile.TemporaryDirectory(prefix="template-") as folder:
        template = None
        if plan.variant:
            pod = await rendered(cluster, plan.variant)
            if plan.adjust is not None:
                plan.adjust(pod)
            template = write_template(pod, Path(folder))
        job = Job(plan.name, plan.steps, template, plan.executors, plan.conf)
        async with submitted(cluster, namespace, job) as driver:
            scene = Scene(cluster, namespace, seen, driver, plan.service or f"{plan.name}-ui")
            try:
                yield scene
            except Exception as error:
                await note(error, cluster, namespace, driver.pod)
                raise
            finally:
                # a driver that goes on would take its share of the machine from the others
                with contextlib.suppress(ApiError):
                    await delete_pod(cluster.admin, namespace, driver.pod)


async def note(
    error: Exception,
    cluster: Cluster,
    namespace: str,
    pod: str,
    containers: Sequence[str] = (DRIVER_CONTAINER, AGENT_CONTAINER),
) -> None:
    """Add to an error what the containers of a Pod have logged last."""
    for container in containers:
        lines: Sequence[str] = []
        with contextlib.suppress(ApiError):
            lines = await cluster.logs(namespace, pod, container)
        error.add_note("\n".join([f"{pod}, {container}:", *lines[-LAST_LINES:]]))
