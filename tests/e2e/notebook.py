"""A notebook Pod as deploy/notebook has it, in which two kernels make a context each, in client mode."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from sandbox.apiclient import ApiError, Object
from sandbox.changes import Change, Changes, Routed, recording
from sandbox.image.images import SPARK_VERSION
from sandbox.image.spark import USER, spark_name
from sandbox.node.cluster import Cluster
from sandbox.node.steps import steps_of
from sandbox.node.submit import QUICK_JVM, SUBMIT_SECONDS, create_spark_namespace
from sandbox.node.templates import AGENT_CONTAINER, agent_container, rendered, set_variable
from sandbox.page import Page
from sandbox.pods import delete_pod, pods
from sandbox.services import services
from sandbox.spark.portwatch import watch_ports
from sandbox.waiting import wait_until
from tests.e2e.client import Answers, Asked, asking
from tests.e2e.lives import EXPOSED, closing
from tests.e2e.scene import ROUTED_SECONDS, agent_status, note

POD = CONTAINER = "notebook"
SERVICE = "notebook-ui"
KERNELS = ("first", "second")
# what a hub sets for its kernels; without a master PySpark makes no context
OPTIONS = f"--master local[*] --driver-memory 512m --driver-java-options '{QUICK_JVM}'"

KERNEL_SECONDS = 150.0


@dataclass(frozen=True)
class Context:
    """A kernel's context. Instants are CLOCK_MONOTONIC in nanoseconds.

    ``page`` came through the Service's address, ``proof`` is what the agent knew the UI by. ``parked`` is when the last
    route was gone, ``closed`` when the UI's socket was.
    """

    name: str
    port: int
    page: Page
    proof: str
    parked: int
    closed: int


@dataclass(frozen=True)
class Notebook:
    """The Pod's life. ``steps`` are what came of each step of each kernel.

    ``idle`` is the Service when both contexts had stopped and the Pod still ran.
    """

    address: str
    contexts: Sequence[Context]
    steps: Sequence[Mapping[str, str]]
    idle: Object
    routed: Sequence[Routed]
    services: Sequence[Change]


async def live_notebook(cluster: Cluster) -> Notebook:
    """Start a kernel, and a second one while the first has stopped its context and stays; then delete the Pod."""
    namespace = f"notebook-{uuid.uuid4().hex[:6]}"
    await create_spark_namespace(cluster, namespace)
    async with recording(cluster.admin, namespace) as seen, _running(cluster, namespace) as address:
        contexts, kernels = [], []
        async with asyncio.TaskGroup() as group:
            for name in KERNELS:
                kernels.append(group.create_task(_kernel(cluster, namespace, name)))
                contexts.append(await _context(cluster, namespace, name, address, seen))
            for name in KERNELS:
                await _steer(cluster, namespace, f"{name}-end")
        idle = (await cluster.admin.request("GET", services(namespace, SERVICE))).ok()
        await cluster.run_kubectl("delete", "pod", f"--namespace={namespace}", POD, "--wait=false")
        await seen.until(lambda seen: seen.of_service(SERVICE)[-1].type == "DELETED", SUBMIT_SECONDS)
        return Notebook(
            address=address,
            contexts=contexts,
            steps=[kernel.result() for kernel in kernels],
            idle=idle,
            routed=seen.routed(SERVICE),
            services=seen.of_service(SERVICE),
        )


@contextlib.asynccontextmanager
async def _running(cluster: Cluster, namespace: str) -> AsyncIterator[str]:
    """Run the notebook Pod while the block lasts; its address is handed out."""
    pod = await rendered(cluster, "notebook")
    (notebook,) = pod["spec"]["containers"]
    notebook |= {"image": spark_name(SPARK_VERSION), "args": ["sleep", "infinity"]}
    set_variable(agent_container(pod), "SPARK_UI_AGENT_DRIVER_UID", str(USER))
    (await cluster.admin.request("POST", pods(namespace), pod)).ok()
    try:
        (found,) = await wait_until(
            cluster.admin,
            pods(namespace),
            lambda found: any(one["status"].get("phase") == "Running" for one in found),
            within=SUBMIT_SECONDS,
        )
        yield found["status"]["podIP"]
    except Exception as error:
        await note(error, cluster, namespace, POD, [CONTAINER, AGENT_CONTAINER])
        raise
    finally:
        with contextlib.suppress(ApiError):
            await delete_pod(cluster.admin, namespace, POD)


async def _kernel(cluster: Cluster, namespace: str, name: str) -> Mapping[str, str]:
    """Run a kernel to its end; return what came of its steps."""
    steps = ["context", "result", f"await:{name}-stop", "stop", f"await:{name}-end"]
    options = f"PYSPARK_SUBMIT_ARGS={OPTIONS} --name {name} pyspark-shell"
    argv = ["env", options, "python3", "/opt/entry.py", "python3", "/opt/job.py", *steps]
    said = await cluster.execute(namespace, POD, CONTAINER, argv, within=KERNEL_SECONDS)
    # a container's log has the node's time before each line
    return steps_of([f"- {line}" for line in said.splitlines()])


async def _context(cluster: Cluster, namespace: str, name: str, address: str, seen: Changes) -> Context:
    """Wait for a kernel's context, be shown its page, and let it stop."""
    await seen.until(lambda seen: {host for host, _ in seen.leads_to(SERVICE)} == {address}, ROUTED_SECONDS)
    ((_, port),) = seen.leads_to(SERVICE)
    host = seen.of_service(SERVICE)[-1].object["spec"]["clusterIP"]
    answers = Answers()
    async with asking(cluster, host, EXPOSED, "/jobs/", answers):
        await answers.until(_is_a_page)
    status = await agent_status(cluster, namespace, POD)
    with cluster.pod_network(address) as network:
        async with watch_ports(network) as ports:
            await _steer(cluster, namespace, f"{name}-stop")
            closed = await closing(ports, port)
    return Context(
        name=name,
        port=port,
        page=next(one.page for one in answers.asked if one.page is not None and _is_a_page(one)),
        proof=status["proof"],
        parked=await seen.until_routed(SERVICE, set()),
        closed=closed,
    )


def _is_a_page(asked: Asked) -> bool:
    """True for a page of a UI that has started up."""
    return asked.page is not None and b"Spark Jobs</title>" in asked.page.body


async def _steer(cluster: Cluster, namespace: str, step: str) -> None:
    await cluster.execute(namespace, POD, CONTAINER, ["touch", f"/tmp/{step}"])
