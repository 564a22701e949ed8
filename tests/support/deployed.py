"""Driver Pods from deploy/ against a real kube-apiserver: rendered, completed as Spark does it, tried without effect."""

from __future__ import annotations

import copy
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

import yaml

from sandbox.apiclient import ApiClient, ApiResponse, Object
from sandbox.control_plane import ControlPlane
from sandbox.objects import create_namespace, pods
from tests.support.pod_rules import CONF_VOLUME, DEFAULT_CONTAINER, driver

DEPLOY = Path(__file__).parents[2] / "deploy"
# the label by which a namespace enforces a level of the Pod Security Standards
LEVEL = "pod-security.kubernetes.io/enforce"
KUBECTL_SECONDS = 30


def kubectl(plane: ControlPlane, *arguments: str, given: str | None = None) -> str:
    command = [str(plane.kubectl), f"--kubeconfig={plane.admin_kubeconfig}", *arguments]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(plane: ControlPlane, variant: str) -> Object:
    pod: Object = yaml.safe_load(kubectl(plane, "kustomize", str(DEPLOY / variant)))
    return pod


def as_spark_makes_it(template: Object) -> Object:
    """What spark-submit in cluster mode adds to a template: image, labels, ports and the mounted configuration."""
    pod = copy.deepcopy(template)
    container = driver(pod)
    container.setdefault("image", "spark:4.1.4")
    if container["name"] != "spark-kubernetes-driver":
        return pod
    pod["metadata"]["labels"] = {
        "spark-role": "driver",
        "spark-app-selector": "spark-1",
        "spark-version": "4.1.4",
    }
    pod["spec"]["restartPolicy"] = "Never"
    container["ports"] = [{"name": "spark-ui", "containerPort": 4040}]
    container.setdefault("env", []).append({"name": "SPARK_CONF_DIR", "value": "/opt/spark/conf"})
    container.setdefault("volumeMounts", []).append({"name": CONF_VOLUME, "mountPath": "/opt/spark/conf"})
    pod["spec"].setdefault("volumes", []).append(
        {"name": CONF_VOLUME, "configMap": {"name": "spark-drv-conf-map"}}
    )
    # Spark puts the driver last
    others = [one for one in pod["spec"]["containers"] if one is not container]
    pod["spec"]["containers"] = [*others, container]
    return pod


def bare_driver() -> Object:
    """The Pod of a spark-submit without a template."""
    name = "spark-kubernetes-driver"
    meta = {"name": "job-driver", "annotations": {DEFAULT_CONTAINER: name}}
    pod = as_spark_makes_it({"metadata": meta, "spec": {"containers": [{"name": name}]}})
    del pod["metadata"]["annotations"]
    return pod


async def namespace_with(api: ApiClient, labels: Mapping[str, str]) -> str:
    name = f"deploy-{uuid.uuid4().hex[:12]}"
    await create_namespace(api, name)
    body = {"metadata": {"labels": dict(labels)}}
    (await api.request("PATCH", f"/api/v1/namespaces/{name}", body)).ok()
    return name


async def tried(api: ApiClient, namespace: str, pod: Object) -> ApiResponse:
    """A dry run of creating a Pod: everything happens but the writing."""
    params = {"dryRun": "All", "fieldValidation": "Strict"}
    return await api.request("POST", pods(namespace), pod, params=params)
