"""The pod templates of deploy/, as a user renders them, with the sandbox's image in the place of the released one."""

from __future__ import annotations

from pathlib import Path

import yaml

from sandbox.apiclient import Object
from sandbox.image.images import AGENT
from sandbox.launch import REPOSITORY
from sandbox.node.cluster import Cluster

DEPLOY = REPOSITORY / "deploy"
AGENT_CONTAINER = "spark-ui-agent"


async def rendered(cluster: Cluster, variant: str) -> Object:
    """Return the Pod that ``kubectl kustomize deploy/VARIANT`` prints, with the sandbox's image of the agent."""
    template: Object = yaml.safe_load(await cluster.run_kubectl("kustomize", str(DEPLOY / variant)))
    with_our_image(template)
    return template


def with_our_image(pod: Object) -> None:
    """Make every container of a Pod that runs the released image run the sandbox's instead."""
    for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
        if container.get("image", "").startswith(f"{AGENT_CONTAINER}:"):
            container["image"] = AGENT


def agent_container(pod: Object) -> Object:
    """Return the container of a Pod in which the agent runs."""
    every = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
    container: Object = next(one for one in every if one["name"] == AGENT_CONTAINER)
    return container


def set_variable(container: Object, name: str, value: str) -> None:
    """Set an environment variable of a container, in place of what it may have."""
    others = [one for one in container.get("env", []) if one["name"] != name]
    container["env"] = [*others, {"name": name, "value": value}]


def write_template(pod: Object, folder: Path) -> Path:
    """Write a Pod into ``folder``, as spark-submit takes it."""
    file = folder / "pod-template.yaml"
    file.write_text(yaml.safe_dump(pod))
    return file
