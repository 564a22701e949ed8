"""What every shipped driver Pod keeps to, template or rendered overlay: each rule once, over the parsed YAML."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent.decide.log4j import HOOK_FILE, LOGGING_FILES
from agent.settings import Settings, load
from sandbox.apiclient import Object

NAME = "spark-ui-agent"
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
CONF_VOLUME = "spark-conf-volume-driver"
PROBES = {"livenessProbe", "readinessProbe", "startupProbe"}
# docs/settings.md, "From the Pod"
DOWNWARD = {
    "POD_NAME": "metadata.name",
    "POD_NAMESPACE": "metadata.namespace",
    "POD_UID": "metadata.uid",
    "POD_IP": "status.podIP",
    "POD_IPS": "status.podIPs",
    "HOST_IP": "status.hostIP",
    "SPARK_APPLICATION_ID": "metadata.labels['spark-app-selector']",
}
MIB = 1 << 20
MEASURED_RSS = 44 * MIB  # of the running agent, by `make footprint`

Rule = Callable[[Object], None]


def containers(pod: Object) -> list[Object]:
    """All containers of a Pod, those of initContainers first."""
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def ours(pod: Object) -> list[Object]:
    """The containers that run the agent's image."""
    return [one for one in containers(pod) if one.get("image", "").startswith(f"{NAME}:")]


def agent(pod: Object) -> Object:
    """The container in which the agent itself runs."""
    return next(one for one in ours(pod) if one["name"] == NAME)


def driver(pod: Object) -> Object:
    """The driver's container, as `kubectl logs` finds it."""
    name = pod["metadata"]["annotations"][DEFAULT_CONTAINER]
    return next(one for one in pod["spec"]["containers"] if one["name"] == name)


def variables(container: Object) -> dict[str, str]:
    """A container's plain variables."""
    return {one["name"]: one["value"] for one in container.get("env", []) if "value" in one}


def mounts(container: Object) -> dict[str, Object]:
    """A container's mounts by volume."""
    return {one["name"]: one for one in container.get("volumeMounts", [])}


def settings(container: Object, driver_name: str = "spark-kubernetes-driver") -> Settings:
    """What the agent makes of a container's variables, in a Pod like any other; raises SettingsError."""
    given = {"metadata.name": "job-driver", "metadata.namespace": "team", "metadata.uid": "u-1"}
    given |= {"status.podIP": "10.1.0.1", "status.hostIP": "192.0.2.1"}
    told = {
        one["name"]: given.get(one["valueFrom"]["fieldRef"]["fieldPath"], "")
        for one in container["env"]
        if "valueFrom" in one
    }
    found = load({**told, **variables(container), "KUBERNETES_SERVICE_HOST": "10.96.0.1"}, own_uid=185)
    assert found.warnings == ()
    assert found.driver_container == driver_name
    return found


def megabytes(quantity: str) -> int:
    """A quantity in Mi, as bytes."""
    assert quantity.endswith("Mi"), quantity
    return int(quantity.removesuffix("Mi")) * MIB


def leaves(node: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Every key and value of a tree, at any depth."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield str(name), value
            yield from leaves(value, str(name))
    elif isinstance(node, list):
        for value in node:
            yield from leaves(value, key)


def driver_is_named_and_first(pod: Object) -> None:
    """Tools look at the first container, Spark by default too; kubectl and Airflow look for the annotation."""
    assert pod["spec"]["containers"][0] is driver(pod)
    assert settings(agent(pod), driver(pod)["name"]).driver_container == driver(pod)["name"]


def sidecar_or_plain(pod: Object) -> None:
    """A native sidecar restarts for ever and ends after the driver; an ordinary container ends by itself."""
    native = agent(pod) in pod["spec"].get("initContainers", [])
    assert settings(agent(pod), driver(pod)["name"]).mode == ("native" if native else "plain")
    assert agent(pod).get("restartPolicy") == ("Always" if native else None)


def nothing_gates_the_driver(pod: Object) -> None:
    """No probe anywhere: executors find the driver only in a Ready Pod, and a startup probe holds it back."""
    assert not PROBES & {key for key, _ in leaves(pod)}
    assert not {
        "readinessGates",
        "terminationGracePeriodSeconds",
        "activeDeadlineSeconds",
        "restartPolicy",
    } & set(pod["spec"])


def no_port_is_declared(pod: Object) -> None:
    """Under hostNetwork it would be a host port, of which a node has one."""
    assert not {"ports", "containerPort", "hostPort"} & {key for key, _ in leaves(pod)}


def quotas_are_met(pod: Object) -> None:
    """Requests and limits, with room for a second process as big as the agent and for the volume."""
    volume = next(one for one in pod["spec"]["volumes"] if one["name"] == NAME)
    for container in ours(pod):
        resources = container["resources"]
        assert set(resources["requests"]) == set(resources["limits"]) == {"cpu", "memory"}
        # with less the driver is held back: 0.22 s with 500m, 0.12 s with one CPU, until the hook's files stand
        assert resources["limits"]["cpu"] == "1"
        assert megabytes(resources["requests"]["memory"]) > MEASURED_RSS
        assert 2 * MEASURED_RSS + megabytes(volume["emptyDir"]["sizeLimit"]) < megabytes(
            resources["limits"]["memory"]
        )


def restricted(pod: Object) -> None:
    """The Pod Security Standards' restricted level, and a read-only root for what is ours."""
    assert pod["spec"]["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for container in containers(pod):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
    for container in ours(pod):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


def no_user_is_pinned(pod: Object) -> None:
    """OpenShift gives each namespace its own; other driver images have theirs."""
    keys = {key for key, _ in leaves(pod)}
    assert not {"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "shareProcessNamespace"} & keys


def volume_is_shared_in_memory(pod: Object) -> None:
    """The agent writes, the driver only reads; both at the path that is the setting's default."""
    volume = next(one for one in pod["spec"]["volumes"] if one["name"] == NAME)
    assert volume["emptyDir"]["medium"] == "Memory"
    for container in ours(pod):
        found = settings(container, driver(pod)["name"])
        assert mounts(container)[NAME] == {"name": NAME, "mountPath": str(found.dir)}
    assert mounts(driver(pod))[NAME] == {"name": NAME, "mountPath": str(found.dir), "readOnly": True}


def agent_knows_its_pod(pod: Object) -> None:
    """All that the downward API can tell."""
    for container in ours(pod):
        told = {
            one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"]
            for one in container["env"]
            if "valueFrom" in one
        }
        assert told == DOWNWARD


def driver_logging_is_hooked(pod: Object) -> None:
    """The files that the agent writes, in the order of the contract, standing before the driver starts."""
    directory = settings(agent(pod), driver(pod)["name"]).dir
    files = [str(directory / name) for name in (*LOGGING_FILES, HOOK_FILE)]
    assert variables(driver(pod))["LOG4J_CONFIGURATION_FILE"] == ",".join(files)
    if settings(agent(pod), driver(pod)["name"]).mode == "native":
        assert agent(pod)["lifecycle"]["postStart"] == {"exec": {"command": [NAME, "install-hook"]}}
    else:
        installer = pod["spec"]["initContainers"][-1]
        assert installer in ours(pod)
        assert installer["args"] == ["install-hook"]


def deletion_parks_first(pod: Object) -> None:
    """preStop of the agent begins together with the driver's SIGTERM; over a Unix socket, never the network."""
    assert agent(pod)["lifecycle"]["preStop"] == {"exec": {"command": [NAME, "drain"]}}
    assert "lifecycle" not in driver(pod)


def agent_sees_the_driver_conf(pod: Object) -> None:
    """Mounted read-only where the agent is told; the volume is Spark's where Spark makes one."""
    own = {one["name"] for one in pod["spec"]["volumes"]}
    for container in ours(pod):
        found = settings(container, driver(pod)["name"])
        (mount,) = [one for name, one in mounts(container).items() if name != NAME]
        assert mount["mountPath"] == str(found.driver_conf_dir)
        assert mount["readOnly"] is True
        spark = driver(pod)["name"] == "spark-kubernetes-driver"
        assert mount["name"] == (CONF_VOLUME if spark else "notebook-conf")
        assert (mount["name"] in own) is not spark
        assert found.hook == "auto"


def api_is_reachable(pod: Object) -> None:
    """By the token that the ServiceAccount's Pods are given."""
    assert "automountServiceAccountToken" not in pod["spec"]


def one_version_everywhere(pod: Object) -> None:
    """No floating tag, and the same one for all that is ours."""
    (image,) = {container["image"] for container in ours(pod)}
    assert image.partition(":")[2] not in ("", "latest")


RULES: tuple[Rule, ...] = (
    driver_is_named_and_first,
    sidecar_or_plain,
    nothing_gates_the_driver,
    no_port_is_declared,
    quotas_are_met,
    restricted,
    no_user_is_pinned,
    volume_is_shared_in_memory,
    agent_knows_its_pod,
    driver_logging_is_hooked,
    deletion_parks_first,
    agent_sees_the_driver_conf,
    api_is_reachable,
    one_version_everywhere,
)
