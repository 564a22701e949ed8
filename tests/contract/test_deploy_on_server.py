"""deploy/ on a real kube-apiserver: everything renders and is accepted, and passes its Pod Security level."""

from __future__ import annotations

import json
import re

import pytest

from sandbox.control_plane import ControlPlane
from tests.support.deployed import DEPLOY, LEVEL, as_spark_makes_it, kubectl, namespace_with, rendered, tried
from tests.support.pod_rules import RULES, agent, driver, variables

OVERLAYS = {
    "native": {},
    "plain": {},
    "hostnetwork": {},
    "notebook": {},
    "overlays/random-port": {"SPARK_SUBMIT_OPTS": "-Dspark.ui.port=0"},
    "overlays/node-port": {"SPARK_UI_AGENT_SERVICE_TYPE": "NodePort"},
    "overlays/load-balancer": {"SPARK_UI_AGENT_SERVICE_TYPE": "LoadBalancer"},
}


@pytest.mark.parametrize("variant", OVERLAYS)
async def test_overlay_renders_keeps_the_rules_and_is_accepted(
    control_plane: ControlPlane, variant: str
) -> None:
    template = rendered(control_plane, variant)
    asked = OVERLAYS[variant]
    have = {**variables(driver(template)), **variables(agent(template))}
    assert asked.items() <= have.items()
    for rule in RULES:
        rule(template)
    namespace = await namespace_with(control_plane.admin, {})
    kubectl(control_plane, "create", "serviceaccount", "spark", f"--namespace={namespace}")
    pod = json.dumps({"apiVersion": "v1", "kind": "Pod", **as_spark_makes_it(template)})
    said = kubectl(
        control_plane, "apply", "--dry-run=server", f"--namespace={namespace}", "--filename=-", given=pod
    )
    assert said.strip() == f"pod/{template['metadata']['name']} created (server dry run)"


async def test_load_balancer_is_internal_on_each_cloud(control_plane: ControlPlane) -> None:
    wanted = variables(agent(rendered(control_plane, "overlays/load-balancer")))[
        "SPARK_UI_AGENT_CREATE_ANNOTATIONS"
    ]
    assert sorted(pair.rpartition("=")[2].lower() for pair in wanted.split(",")) == [
        "internal",
        "internal",
        "true",
    ]


async def test_account_and_examples_are_accepted(control_plane: ControlPlane) -> None:
    namespace = await namespace_with(control_plane.admin, {})
    where = ("apply", "--dry-run=server", f"--namespace={namespace}")
    made = kubectl(control_plane, *where, "--kustomize", str(DEPLOY))
    assert re.findall(r"^(\S+) created", made, re.MULTILINE) == [
        "serviceaccount/spark",
        "role.rbac.authorization.k8s.io/spark-ui-agent",
        "rolebinding.rbac.authorization.k8s.io/spark-ui-agent",
    ]
    made = kubectl(control_plane, *where, "--filename", str(DEPLOY / "examples/network-policy.yaml"))
    assert made.startswith("networkpolicy.networking.k8s.io/spark-driver created")


@pytest.mark.parametrize("variant", sorted(OVERLAYS.keys() - {"hostnetwork"}))
async def test_pod_passes_the_restricted_level(control_plane: ControlPlane, variant: str) -> None:
    api = control_plane.admin
    namespace = await namespace_with(api, {LEVEL: "restricted"})
    pod = as_spark_makes_it(rendered(control_plane, variant))
    pod["spec"].pop("serviceAccountName", None)
    assert (await tried(api, namespace, pod)).ok()["metadata"]["name"] == pod["metadata"]["name"]
    driver(pod)["securityContext"] = {}
    assert (await tried(api, namespace, pod)).status == 403


@pytest.mark.parametrize("level", ["baseline", "restricted"])
async def test_hostnetwork_is_all_that_the_levels_refuse(control_plane: ControlPlane, level: str) -> None:
    api = control_plane.admin
    namespace = await namespace_with(api, {LEVEL: level})
    pod = as_spark_makes_it(rendered(control_plane, "hostnetwork"))
    refused = await tried(api, namespace, pod)
    assert refused.status == 403
    _, _, violated = refused.body["message"].partition(f' violates PodSecurity "{level}:latest": ')
    # the host port is the one that Spark declares
    assert violated == (
        'host namespaces (hostNetwork=true), hostPort (container "spark-kubernetes-driver" uses hostPort 4040)'
    )
    del pod["spec"]["hostNetwork"]
    assert (await tried(api, namespace, pod)).status == 201
