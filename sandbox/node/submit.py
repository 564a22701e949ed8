"""spark-submit in cluster mode against the node, and the driver Pod that it makes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from sandbox import launch
from sandbox.apiclient import Object
from sandbox.components import SERVICE_IP
from sandbox.image.images import SPARK_VERSION
from sandbox.image.spark import JOB, spark_name
from sandbox.node.cluster import Cluster
from sandbox.node.steps import steps_of
from sandbox.pods import DRIVER_CONTAINER, create_namespace, pods
from sandbox.spark.install import spark_home
from sandbox.spark.java import java_home
from sandbox.waiting import wait_until

ACCOUNT = "spark"
SUBMIT_SECONDS = 120.0
# a log can be followed, but a steady look is simpler and costs a few ms
LOG_POLL_SECONDS = 0.2
# a JVM of seconds gains nothing from the optimising compiler
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"


@dataclass(frozen=True)
class Job:
    """What is submitted: the steps of `sandbox.image.job`, a pod template, and configuration on top of ours.

    ``executors`` 0 runs all in the driver (``local[*]``).
    """

    name: str
    steps: Sequence[str]
    template: Path | None = None
    executors: int = 0
    conf: Mapping[str, str] = field(default_factory=dict)
    version: str = SPARK_VERSION


class SubmitError(Exception):
    """spark-submit failed; the message ends with what it said."""


class Submitted:
    """A submitted job: spark-submit's process, and its driver Pod."""

    def __init__(
        self, cluster: Cluster, namespace: str, job: Job, process: asyncio.subprocess.Process, log: Path
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.pod = f"{job.name}-driver"
        self._process = process
        self._log = log

    @property
    def said(self) -> str:
        """What spark-submit has printed so far."""
        return self._log.read_text(errors="replace")

    async def finished(self, within: float = SUBMIT_SECONDS) -> int:
        """Wait for spark-submit to end, as it does when the Pod is Succeeded or Failed; return its exit status."""
        async with asyncio.timeout(within):
            return await self._process.wait()

    async def until(self, *phases: str, within: float = SUBMIT_SECONDS) -> Object:
        """Wait until the driver Pod is in one of ``phases``; return it.

        TimeoutError tells what it was; `SubmitError` when spark-submit fails before there is a Pod.
        """
        return await self.until_pod(lambda pod: pod.get("status", {}).get("phase") in phases, within=within)

    async def until_pod(self, holds: Callable[[Object], bool], *, within: float = SUBMIT_SECONDS) -> Object:
        """Wait until ``holds`` for the driver Pod; return it. Raises as `until`."""
        only = {"fieldSelector": f"metadata.name={self.pod}"}
        waiting = asyncio.create_task(
            wait_until(
                self.cluster.admin,
                pods(self.namespace),
                lambda found: any(map(holds, found)),
                params=only,
                within=within,
            )
        )
        ending = asyncio.create_task(self._process.wait())
        try:
            await asyncio.wait([waiting, ending], return_when=asyncio.FIRST_COMPLETED)
            gone = not waiting.done() and not await get_pods(self.cluster, self.namespace, only)
            # it may have been seen meanwhile
            if gone and not waiting.done():
                raise SubmitError(f"spark-submit ended with {self._process.returncode}:\n{self.said[-2000:]}")
            (pod,) = await waiting
        finally:
            waiting.cancel()
            ending.cancel()
        return pod

    async def log(self, container: str = DRIVER_CONTAINER) -> list[str]:
        """Return the lines of a container, the driver's by default; see `Cluster.logs`."""
        return await self.cluster.logs(self.namespace, self.pod, container)

    async def until_step(self, step: str, *, within: float = SUBMIT_SECONDS) -> str:
        """Wait until the job has printed ``step``; return what came of it. TimeoutError tells the log's end."""
        lines: list[str] = []
        try:
            async with asyncio.timeout(within):
                # before, there is no log to ask for
                await self.until("Running", "Succeeded", "Failed", within=within)
                while True:
                    lines = await self.log()
                    if (came := steps_of(lines).get(step)) is not None:
                        return came
                    await asyncio.sleep(LOG_POLL_SECONDS)
        except TimeoutError:
            last = "\n".join(lines[-20:])
            raise TimeoutError(
                f"{self.pod}: no step {step} within {within:g} s; last lines:\n{last}"
            ) from None

    async def steer(self, step: str) -> None:
        """Let the job go on from its step ``await:...``."""
        await self.cluster.execute(self.namespace, self.pod, DRIVER_CONTAINER, ["touch", f"/tmp/{step}"])


async def get_pods(cluster: Cluster, namespace: str, query: Mapping[str, str]) -> list[Object]:
    """Return the Pods of a namespace that ``query`` selects."""
    found: list[Object] = (await cluster.admin.request("GET", pods(namespace), params=query)).ok()["items"]
    return found


async def create_spark_namespace(
    cluster: Cluster, name: str, labels: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Create a namespace with the ServiceAccount ``spark``, which may do what Spark and the agent need."""
    await create_namespace(cluster.admin, name)
    if labels:
        change = {"metadata": {"labels": dict(labels)}}
        (await cluster.admin.request("PATCH", f"/api/v1/namespaces/{name}", change)).ok()
    within = f"--namespace={name}"
    await cluster.run_kubectl("create", "serviceaccount", ACCOUNT, within)
    await cluster.run_kubectl(
        "create", "rolebinding", ACCOUNT, within, "--clusterrole=edit", f"--serviceaccount={name}:{ACCOUNT}"
    )
    await cluster.run_kubectl("apply", within, f"--filename={launch.REPOSITORY / 'deploy/rbac.yaml'}")


@contextlib.asynccontextmanager
async def submitted(cluster: Cluster, namespace: str, job: Job) -> AsyncIterator[Submitted]:
    """Run spark-submit while the block lasts. Raises what `spark_home` and `java_home` raise."""
    home, java = spark_home(job.version), java_home()
    with tempfile.TemporaryDirectory(prefix="submit-") as folder:
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": folder,
            "JAVA_HOME": str(java),
            "SPARK_HOME": str(home),
            "SPARK_CONF_DIR": folder,
            "SPARK_SUBMIT_OPTS": QUICK_JVM,
            "KUBECONFIG": str(cluster.admin_kubeconfig),
        }
        log = Path(folder, "submit.log")
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            process = await launch.start(
                [str(home / "bin/spark-submit"), *arguments(job, namespace, cluster.url)],
                env=env,
                stdout=output,
                stderr=output,
            )
        finally:
            os.close(output)
        try:
            yield Submitted(cluster, namespace, job, process, log)
        finally:
            await launch.end(process)


def arguments(job: Job, namespace: str, url: str) -> list[str]:
    """Return spark-submit's arguments; ``url`` is the API server's as seen from where it runs."""
    conf = {**_conf(namespace, job), **job.conf}
    options = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    master = ["--master", f"k8s://{url}", "--deploy-mode", "cluster", "--name", job.name]
    return [*master, *options, JOB, *job.steps]


def _conf(namespace: str, job: Job) -> dict[str, str]:
    kubernetes = {
        "namespace": namespace,
        "container.image": spark_name(job.version),
        "container.image.pullPolicy": "Never",
        "authenticate.driver.serviceAccountName": ACCOUNT,
        "driver.pod.name": f"{job.name}-driver",
        "driver.request.cores": "0.1",
        "executor.request.cores": "0.1",
        # there is no DNS on the node
        "driver.master": f"https://{SERVICE_IP}" if job.executors else "local[*]",
        "executor.useDriverPodIP": "true",
    }
    if job.template is not None:
        kubernetes["driver.podTemplateFile"] = str(job.template)
        kubernetes["driver.podTemplateContainerName"] = DRIVER_CONTAINER
    return {f"spark.kubernetes.{name}": value for name, value in kubernetes.items()} | {
        # local[*] has none, but the option may not say so
        "spark.executor.instances": str(max(1, job.executors)),
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.executor.extraJavaOptions": QUICK_JVM,
    }
