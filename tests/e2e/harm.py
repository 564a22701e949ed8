"""Lives in which something is broken: the job, the agent, or what the agent needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sandbox.apiclient import Object
from sandbox.image.images import AGENT
from sandbox.node.cluster import Cluster
from sandbox.node.containers import finished_at, terminated
from sandbox.node.templates import AGENT_CONTAINER, agent_container, set_variable
from sandbox.pods import DRIVER_CONTAINER
from tests.e2e.scene import Adjust, Ending, Plan, played

JOB = ("context", "result", "stop")
PREFIX = "SPARK_UI_AGENT_"


@dataclass(frozen=True)
class Case:
    """A job that ends by itself: its steps, its configuration, and what is wrong with the Pod's template."""

    name: str
    steps: Sequence[str] = JOB
    conf: Mapping[str, str] = field(default_factory=dict)
    adjust: Adjust | None = None


def _wrong_settings(pod: Object) -> None:
    set_variable(agent_container(pod), f"{PREFIX}EXPOSE", "many")
    set_variable(agent_container(pod), f"{PREFIX}HOOK_TIMEOUT", "soon")


def _no_api_server(pod: Object) -> None:
    # a Service address that nobody has
    set_variable(agent_container(pod), "KUBERNETES_SERVICE_HOST", "10.96.255.254")


# what breaks the job itself, with the agent and without
BROKEN_JOBS = (
    Case("oom", ["context", "hoard"]),
    # the agent's image understands none of Spark's words
    Case("image", conf={"spark.kubernetes.driver.container.image": AGENT}),
    Case("early", ["exit:3"]),
)
# what breaks the agent alone
BROKEN_AGENTS = (
    Case("settings", adjust=_wrong_settings),
    # of a ServiceAccount to which nothing is bound
    Case("rights", conf={"spark.kubernetes.authenticate.driver.serviceAccountName": "default"}),
    Case("server", adjust=_no_api_server),
)


@dataclass(frozen=True)
class Harmed:
    """How a job ended beside the agent, what the agent had to say, and its own exit code.

    ``lingered``: how long the agent outlived the driver by what the kubelet has told of both, in whole seconds.
    """

    ending: Ending
    log: Sequence[str]
    agent_status: int
    lingered: float


async def live_harmed(cluster: Cluster, case: Case) -> Harmed:
    """Do the job beside the agent."""
    plan = Plan(case.name, case.steps, "native", case.adjust, conf=case.conf)
    async with played(cluster, plan) as scene:
        pod = await scene.driver.until("Succeeded", "Failed")
        agent = terminated(pod, AGENT_CONTAINER)
        lingered = finished_at(agent) - finished_at(terminated(pod, DRIVER_CONTAINER))
        return Harmed(await scene.ended(), await scene.agent_log(), agent["exitCode"], lingered)


@dataclass(frozen=True)
class Beside:
    """How one job ended beside the agent, and alone."""

    harmed: Harmed
    alone: Ending


async def live_beside(cluster: Cluster, case: Case) -> Beside:
    """Do the job twice, with the agent and without."""
    harmed = await live_harmed(cluster, case)
    async with played(cluster, Plan(f"{case.name}-alone", case.steps, conf=case.conf)) as scene:
        return Beside(harmed, await scene.ended())


def outcome(ending: Ending) -> tuple[str, int, str, str]:
    """Return what counts of how a job ended: phase, exit code, reason, and what it computed."""
    return ending.phase, ending.exit_code, ending.reason, ending.steps.get("result", "")
