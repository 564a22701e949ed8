"""What kubeflow/spark-operator makes of a SparkApplication: a UI Service first, then a driver Pod by spark-submit.

As in its source: the Service in ``createDriverIngressService`` and ``createWebUIService`` (driveringress.go at 0d8511a, web_ui.go
at 0dc641b), spark-submit's arguments in ``buildSparkSubmitArgs`` (submission.go at 05d6061; all three in
internal/controller/sparkapplication), names, labels and owner in pkg/util/sparkapplication.go at 05763c1.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass

from sandbox.apiclient import Object
from sandbox.changes import recording
from sandbox.node.cluster import Cluster
from sandbox.node.submit import create_spark_namespace
from sandbox.services import services
from tests.e2e.operated import STEPS, Operated, operated
from tests.e2e.scene import Plan, played_in

NAME = "sample"
SERVICE = f"{NAME}-ui-svc"
GROUP, VERSION, KIND = "sparkoperator.k8s.io", "v1beta2", "SparkApplication"
# the port that the operator takes for the UI's where spark.ui.port is not in spec.sparkConf
CONFIGURED = 4040
# the API server takes no *.k8s.io without; the operator's own definition says the same
APPROVED = {"api-approved.kubernetes.io": "https://github.com/kubeflow/spark-operator/pull/1298"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# the API server takes a new kind up, and tells nobody
DEFINED_SECONDS = 30.0
LOOK_AGAIN = 0.1


@dataclass(frozen=True)
class Kubeflow:
    """The job, and the operator's Service: as it was ``made``, and as it was ``left`` when the Pod had ended."""

    job: Operated
    made: Object
    left: Object


async def live_kubeflow(cluster: Cluster) -> Kubeflow:
    """Do what the operator does; the job then asks for a port of its own, of which the operator knows nothing."""
    namespace, submission = f"kubeflow-{uuid.uuid4().hex[:6]}", str(uuid.uuid4())
    await create_spark_namespace(cluster, namespace)
    application = await _application(cluster, namespace)
    async with recording(cluster.admin, namespace) as seen:
        body = _service(application, submission)
        made = (await cluster.admin.request("POST", services(namespace), body)).ok()
        plan = Plan(NAME, STEPS, "native", _as_template, conf=_conf(submission), service=SERVICE)
        async with played_in(cluster, plan, namespace, seen) as scene:
            job = await operated(scene)
            return Kubeflow(job, made, await scene.kept())


async def _application(cluster: Cluster, namespace: str) -> Object:
    """Make a SparkApplication, of a kind that has no schema here: the garbage collector looks for the Service's owner."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": KIND, "plural": "sparkapplications", "singular": "sparkapplication"}
    definition = {
        "metadata": {"name": f"sparkapplications.{GROUP}", "annotations": APPROVED},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }
    (await cluster.admin.request("POST", DEFINITIONS, definition)).ok()
    place = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/sparkapplications"
    async with asyncio.timeout(DEFINED_SECONDS):
        while True:
            if (await cluster.admin.request("GET", place)).status == 200:
                break
            await asyncio.sleep(LOOK_AGAIN)
    body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": NAME}}
    return (await cluster.admin.request("POST", place, body)).ok()


def _service(application: Object, submission: str) -> Object:
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "name": NAME,
        "uid": application["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "metadata": {
            "name": SERVICE,
            "labels": {f"{GROUP}/app-name": NAME, f"{GROUP}/submission-id": submission},
            "ownerReferences": [owner],
        },
        "spec": {
            "type": "ClusterIP",
            "ports": [{"name": "spark-driver-ui-port", "port": CONFIGURED, "targetPort": CONFIGURED}],
            "selector": {f"{GROUP}/app-name": NAME, "spark-role": "driver"},
        },
    }


def _conf(submission: str) -> dict[str, str]:
    labels = {"app-name": NAME, "launched-by-spark-operator": "true", "submission-id": submission}
    return {
        "spark.kubernetes.submission.waitAppCompletion": "false",
        **{f"spark.kubernetes.driver.label.{GROUP}/{name}": value for name, value in labels.items()},
    }


def _as_template(pod: Object) -> None:
    """Leave of a Pod what ``spec.driver.template`` takes and the operator writes into its file: a PodTemplateSpec."""
    for name in ("apiVersion", "kind"):
        del pod[name]
    del pod["metadata"]["name"]
