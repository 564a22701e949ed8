"""The admission policy of deploy/ on a real kube-apiserver: which Pods it changes, and how."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator

import pytest
import yaml

from sandbox.apiclient import ApiClient, Object
from sandbox.control_plane import ControlPlane
from tests.support.deployed import (
    DEPLOY,
    LEVEL,
    as_spark_makes_it,
    bare_driver,
    kubectl,
    namespace_with,
    tried,
)
from tests.support.pod_rules import (
    CONF_VOLUME,
    DEFAULT_CONTAINER,
    NAME,
    agent,
    driver,
    mounts,
    ours,
    variables,
)

OPTED_IN = {"spark-ui-agent/inject": "enabled"}
# a policy is taken up by informers, which refresh once a second
POLICY_SECONDS = 20

Change = Callable[[Object], None]


@pytest.fixture(scope="module")
def policy(control_plane: ControlPlane) -> Iterator[ApiClient]:
    """The admission policy in force."""
    file = f"--filename={DEPLOY / 'admission/policy.yaml'}"
    kubectl(control_plane, "apply", file)
    try:
        asyncio.run(in_force(control_plane.admin))
        yield control_plane.admin
    finally:
        kubectl(control_plane, "delete", file)


async def in_force(api: ApiClient) -> None:
    namespace = await namespace_with(api, OPTED_IN)
    async with asyncio.timeout(POLICY_SECONDS):
        # nobody tells when the API server has taken a policy up: it must be asked
        while True:
            if ours((await tried(api, namespace, bare_driver())).ok()):
                return
            await asyncio.sleep(0.1)


@pytest.fixture
async def team(policy: ApiClient) -> str:
    """A namespace that asks for the agent."""
    return await namespace_with(policy, OPTED_IN)


def touched(pod: Object) -> bool:
    return NAME in json.dumps([pod["spec"], pod["metadata"].get("annotations")])


def without_token(container: Object) -> Object:
    """A container without what the API server fills in."""
    left = {
        key: value for key, value in container.items() if not key.startswith(("termination", "imagePull"))
    }
    left["volumeMounts"] = [
        one for one in container["volumeMounts"] if not one["name"].startswith("kube-api-access")
    ]
    left["env"] = json.loads(json.dumps(container["env"]).replace('"apiVersion": "v1", ', ""))
    return left


async def test_policy_adds_the_sidecar_of_the_native_template(policy: ApiClient, team: str) -> None:
    pod = (await tried(policy, team, bare_driver())).ok()
    template = yaml.safe_load((DEPLOY / "native/pod-template.yaml").read_text())
    wanted = agent(template)
    wanted["securityContext"] |= template["spec"]["securityContext"]
    assert without_token(agent(pod)) == wanted
    assert template["spec"]["volumes"][0] in pod["spec"]["volumes"]
    assert any(one["name"].startswith("kube-api-access") for one in agent(pod)["volumeMounts"])
    assert pod["metadata"]["annotations"] == template["metadata"]["annotations"]
    assert mounts(driver(pod))[NAME] == mounts(driver(template))[NAME]
    hook = variables(driver(template))
    assert variables(driver(pod)) == {"SPARK_CONF_DIR": "/opt/spark/conf", **hook}


async def test_policy_leaves_everything_else_of_the_pod(policy: ApiClient, team: str) -> None:
    given = bare_driver()
    given["metadata"]["annotations"] = {DEFAULT_CONTAINER: "proxy", "team": "a"}
    given["spec"]["initContainers"] = [{"name": "fetch", "image": "none"}]
    given["spec"]["containers"].insert(0, {"name": "proxy", "image": "none"})
    # doubled variables exist in the field
    given["spec"]["containers"][1]["env"] += [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    pod = (await tried(policy, team, given)).ok()
    assert [one["name"] for one in pod["spec"]["initContainers"]] == ["fetch", NAME]
    assert [one["name"] for one in pod["spec"]["containers"]] == ["proxy", "spark-kubernetes-driver"]
    assert pod["metadata"]["annotations"] == given["metadata"]["annotations"]
    own = given["spec"]["containers"][1]["env"]
    assert pod["spec"]["containers"][1]["env"][: len(own)] == own
    assert [one["name"] for one in pod["spec"]["containers"][1]["env"][len(own) :]] == [
        "LOG4J_CONFIGURATION_FILE"
    ]
    assert not touched({"metadata": {}, "spec": pod["spec"]["containers"][0]})


async def test_policy_does_nothing_twice(policy: ApiClient, team: str) -> None:
    once = (await tried(policy, team, bare_driver())).ok()
    again = {"metadata": {key: once["metadata"][key] for key in ("name", "labels", "annotations")}}
    twice = (await tried(policy, team, {**again, "spec": once["spec"]})).ok()
    assert twice["spec"] == once["spec"]
    assert twice["metadata"]["annotations"] == once["metadata"]["annotations"]


async def test_policy_keeps_a_logging_configuration_of_the_user(policy: ApiClient, team: str) -> None:
    given = bare_driver()
    given["spec"]["containers"][0]["env"].append({"name": "LOG4J_CONFIGURATION_FILE", "value": "/opt/my.xml"})
    pod = (await tried(policy, team, given)).ok()
    assert driver(pod)["env"] == given["spec"]["containers"][0]["env"]
    assert NAME not in mounts(driver(pod))
    assert mounts(agent(pod))[CONF_VOLUME]["readOnly"] is True


def without_the_conf_volume(pod: Object) -> None:
    pod["spec"]["volumes"] = []
    pod["spec"]["containers"][0]["volumeMounts"] = []
    pod["spec"]["containers"][0]["env"] = []


def reading_another_conf(pod: Object) -> None:
    pod["spec"]["containers"][0]["env"] = [{"name": "SPARK_CONF_DIR", "value": "/etc/spark"}]


def reading_a_conf_from_elsewhere(pod: Object) -> None:
    source = {"configMapKeyRef": {"name": "conf", "key": "dir"}}
    pod["spec"]["containers"][0]["env"] = [{"name": "SPARK_CONF_DIR", "valueFrom": source}]


@pytest.mark.parametrize(
    "change", [without_the_conf_volume, reading_another_conf, reading_a_conf_from_elsewhere]
)
async def test_policy_adds_no_hook_where_the_driver_conf_is_not_seen(
    policy: ApiClient, team: str, change: Change
) -> None:
    given = bare_driver()
    change(given)
    pod = (await tried(policy, team, given)).ok()
    assert set(mounts(agent(pod))) - {NAME} == {
        one for one in mounts(agent(pod)) if one.startswith("kube-api-")
    }
    assert variables(agent(pod)) == {}
    assert driver(pod).get("env", []) == given["spec"]["containers"][0]["env"]
    assert NAME not in mounts(driver(pod))


async def test_policy_finds_the_conf_wherever_it_is_mounted(policy: ApiClient, team: str) -> None:
    given = bare_driver()
    given["spec"]["containers"][0]["env"][0]["value"] = "/etc/spark"
    given["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] = "/etc/spark"
    pod = (await tried(policy, team, given)).ok()
    assert variables(agent(pod)) == {"SPARK_UI_AGENT_DRIVER_CONF_DIR": "/etc/spark"}
    assert mounts(agent(pod))[CONF_VOLUME]["mountPath"] == "/etc/spark"
    assert "LOG4J_CONFIGURATION_FILE" in variables(driver(pod))


def executor(pod: Object) -> None:
    pod["metadata"]["labels"]["spark-role"] = "executor"
    pod["spec"]["containers"][0]["name"] = "spark-kubernetes-executor"


def other_container(pod: Object) -> None:
    pod["spec"]["containers"][0]["name"] = "main"


@pytest.mark.parametrize("change", [executor, other_container])
async def test_policy_leaves_what_is_no_driver(policy: ApiClient, team: str, change: Change) -> None:
    given = bare_driver()
    change(given)
    assert not touched((await tried(policy, team, given)).ok())


async def test_policy_leaves_namespaces_that_did_not_ask(policy: ApiClient) -> None:
    namespace = await namespace_with(policy, {"spark-ui-agent/inject": "disabled"})
    assert not touched((await tried(policy, namespace, bare_driver())).ok())


@pytest.mark.parametrize("variant", ["native", "plain", "hostnetwork"])
async def test_policy_leaves_drivers_that_have_the_agent(policy: ApiClient, team: str, variant: str) -> None:
    given = as_spark_makes_it(yaml.safe_load((DEPLOY / variant / "pod-template.yaml").read_text()))
    pod = (await tried(policy, team, given)).ok()
    assert [one["name"] for one in ours(pod)] == [one["name"] for one in ours(given)]
    assert driver(pod)["env"] == driver(given)["env"]


def agent_of_another_form(pod: Object) -> None:
    pod["spec"]["containers"].append({"name": NAME, "image": "none"})


def volume_of_that_name(pod: Object) -> None:
    pod["spec"]["volumes"].append({"name": NAME, "emptyDir": {}})


def mount_at_that_path(pod: Object) -> None:
    pod["spec"]["volumes"].append({"name": "theirs", "emptyDir": {}})
    mount = {"name": "theirs", "mountPath": "/run/spark-ui-agent"}
    pod["spec"]["containers"][0]["volumeMounts"].append(mount)


@pytest.mark.parametrize("change", [agent_of_another_form, volume_of_that_name, mount_at_that_path])
async def test_policy_leaves_pods_in_which_its_names_are_taken(
    policy: ApiClient, team: str, change: Change
) -> None:
    given = bare_driver()
    change(given)
    pod = (await tried(policy, team, given)).ok()
    assert "initContainers" not in pod["spec"]
    assert pod["spec"]["containers"][0]["env"] == given["spec"]["containers"][0]["env"]


@pytest.mark.parametrize(
    ("of_pod", "of_driver", "context"),
    [
        (None, None, {"runAsNonRoot": True}),
        (0, None, {"runAsNonRoot": False, "runAsUser": 0}),
        (1000, None, {"runAsNonRoot": True, "runAsUser": 1000}),
        (1000, 0, {"runAsNonRoot": False, "runAsUser": 0}),
        (0, 1001, {"runAsNonRoot": True, "runAsUser": 1001}),
    ],
)
async def test_policy_runs_the_agent_as_the_driver(
    policy: ApiClient, team: str, of_pod: int | None, of_driver: int | None, context: Object
) -> None:
    given = bare_driver()
    if of_pod is not None:
        given["spec"]["securityContext"] = {"runAsUser": of_pod}
    if of_driver is not None:
        given["spec"]["containers"][0]["securityContext"] = {"runAsUser": of_driver}
    found = agent((await tried(policy, team, given)).ok())["securityContext"]
    assert {key: value for key, value in found.items() if key.startswith("runAs")} == context


async def test_policy_keeps_a_restricted_driver_restricted(policy: ApiClient) -> None:
    namespace = await namespace_with(policy, {**OPTED_IN, LEVEL: "restricted"})
    given = bare_driver()
    given["spec"]["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    given["spec"]["containers"][0]["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert ours((await tried(policy, namespace, given)).ok())
