"""deploy/ by itself: the rules of the Pod templates, and that policies, examples and documents agree with the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from agent.settings import PREFIX
from agent.settings.table import TABLE
from agent.tell.web import HEALTH_PORT
from sandbox.apiclient import Object
from tests.support.pod_rules import RULES, Rule, agent, driver, leaves, ours, variables

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TEMPLATES = ("native", "plain", "hostnetwork", "notebook")
MANIFESTS = sorted(DEPLOY.rglob("*.yaml"))
TEXTS = sorted([*DEPLOY.rglob("*.md"), *MANIFESTS, *ROOT.glob("docs/*.md"), ROOT / "README.md"])


def documents(path: Path) -> list[Object]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def template(name: str) -> Object:
    (pod,) = documents(DEPLOY / name / "pod-template.yaml")
    return pod


def policy() -> Object:
    found = documents(DEPLOY / "admission/policy.yaml")[0]
    assert found["kind"] == "MutatingAdmissionPolicy"
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", TEMPLATES)
def test_template_keeps_the_rule(name: str, rule: Rule) -> None:
    rule(template(name))


@pytest.mark.parametrize("name", ["native", "plain", "hostnetwork"])
def test_the_driver_container_has_the_name_that_spark_gives(name: str) -> None:
    assert driver(template(name))["name"] == "spark-kubernetes-driver"


def test_hostnetwork_is_the_native_template_on_the_node_network() -> None:
    pod = template("hostnetwork")
    assert pod["spec"].pop("hostNetwork") is True
    assert pod["spec"].pop("dnsPolicy") == "ClusterFirstWithHostNet"
    assert pod == template("native")


def test_only_the_random_port_component_touches_the_ui_port() -> None:
    asking = {
        path.relative_to(DEPLOY).as_posix()
        for path in MANIFESTS
        for document in documents(path)
        for _, value in leaves(document)
        if isinstance(value, str) and "spark.ui.port" in value
    }
    assert asking == {"components/random-port/kustomization.yaml"}


def test_every_variable_of_ours_that_is_named_exists() -> None:
    known = {PREFIX + row.name for row in TABLE}
    for path in TEXTS:
        named = set(re.findall(rf"\b{PREFIX}[A-Z_]*[A-Z]\b", path.read_text()))
        assert named <= known, path


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.relative_to(DEPLOY).as_posix())
def test_images_have_the_version_of_this_project(path: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert set(re.findall(r"spark-ui-agent:([\w.]+)", path.read_text())) <= {version}


def test_every_manifest_is_told_of_in_the_readme() -> None:
    text = (DEPLOY / "README.md").read_text()
    for path in MANIFESTS:
        place = path.relative_to(DEPLOY)
        shown = place.parent if place.name in ("kustomization.yaml", "pod-template.yaml") else place
        assert shown == Path() or f"`{shown.as_posix()}" in text, f"{place} is not in deploy/README.md"


def test_policy_fails_open_and_only_where_a_namespace_asks() -> None:
    found, binding = documents(DEPLOY / "admission/policy.yaml")
    assert found["apiVersion"] == binding["apiVersion"] == "admissionregistration.k8s.io/v1"
    assert found["spec"]["failurePolicy"] == "Ignore"
    assert found["spec"]["matchConstraints"]["objectSelector"] == {"matchLabels": {"spark-role": "driver"}}
    (rule,) = found["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["CREATE"], ["pods"])
    assert binding["spec"]["policyName"] == found["metadata"]["name"]
    selector = binding["spec"]["matchResources"]["namespaceSelector"]
    assert selector == {"matchLabels": {"spark-ui-agent/inject": "enabled"}}


def test_kyverno_policy_is_the_same_policy() -> None:
    (theirs,) = documents(DEPLOY / "admission/kyverno.yaml")
    found, binding = documents(DEPLOY / "admission/policy.yaml")
    for part in ("failurePolicy", "matchConditions", "variables", "mutations"):
        assert theirs["spec"][part] == found["spec"][part]
    assert theirs["spec"]["matchConstraints"] == {
        **found["spec"]["matchConstraints"],
        **binding["spec"]["matchResources"],
    }


def test_the_image_is_one_line_of_the_policy() -> None:
    image = next(one for one in policy()["spec"]["variables"] if one["name"] == "image")
    assert image["expression"] == f"'{agent(template('native'))['image']}'"
    (mutation,) = policy()["spec"]["mutations"]
    assert "spark-ui-agent:" not in mutation["jsonPatch"]["expression"]


def test_the_role_has_the_rights_of_the_contract() -> None:
    role, binding = documents(DEPLOY / "rbac.yaml")
    granted = {
        (group, resource): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {
        ("", "services"): {"get", "create", "patch", "delete"},
        ("discovery.k8s.io", "endpointslices"): {"list"},
        ("", "pods"): {"get"},
        ("", "events"): {"create"},
    }
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (account,) = documents(DEPLOY / "service-account.yaml")
    assert [one["name"] for one in binding["subjects"]] == [account["metadata"]["name"]]


def test_examples_name_the_port_of_the_metrics() -> None:
    (monitor,) = documents(DEPLOY / "examples/pod-monitor.yaml")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["path"] == "/metrics"
    made = {one["replacement"] for one in endpoint["relabelings"] if one.get("targetLabel") == "__address__"}
    assert made == {f"$1:{HEALTH_PORT}", f"[$1]:{HEALTH_PORT}"}
    (network,) = documents(DEPLOY / "examples/network-policy.yaml")
    open_ports = [
        (port["port"], port.get("endPort")) for rule in network["spec"]["ingress"] for port in rule["ports"]
    ]
    assert open_ports == [(4040, 4056), (4440, 4456), (HEALTH_PORT, None), (7078, None), (7079, None)]


def test_plain_template_runs_one_image_with_the_same_variables_twice() -> None:
    installer, running = ours(template("plain"))
    assert variables(running) == {**variables(installer), f"{PREFIX}MODE": "plain"}
