"""The driver Pod that the Apache Spark Kubernetes Operator makes, and the same with its configuration elsewhere.

The operator (apache/spark-kubernetes-operator) runs no spark-submit, but what that runs: Spark's KubernetesDriverBuilder; then it
adds the configuration's volume, its mount and SPARK_CONF_DIR just as spark-submit does (``addConfigMap`` of
SparkAppResourceSpec.java at 04b1b9f). So spark-submit makes the same Pod when it is told the name that follows from the
operator's id (``generateSparkAppId`` of SparkAppSubmissionWorker.java at 034cefc, SparkAppDriverConf.java at 026bc0f) and its
labels (SparkAppResourceSpecFactory.java at 0728ffd, Utils.java at 1ed8555). Two things are not made here: the Pod's owner,
which is the custom resource, and the id as the application's: Spark 4.1's spark-submit takes a random one whatever
spark.app.id says.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from sandbox.apiclient import Object
from sandbox.changes import recording
from sandbox.image.spark import ENTRYPOINT
from sandbox.node.cluster import Cluster
from sandbox.node.submit import create_spark_namespace
from sandbox.node.templates import agent_container, set_variable
from tests.e2e.operated import STEPS, Operated, operated
from tests.e2e.scene import Adjust, Plan, played_in

APPLICATION = "sample"
# the name of the custom resource and the number of its attempt
ID = f"{APPLICATION}-0"
LABELS = {
    "spark.operator/name": "spark-kubernetes-operator",
    "spark.operator/spark-app-name": APPLICATION,
}
# where the driver's configuration is elsewhere, and the ConfigMap that holds it: one of spec.configMapSpecs
ELSEWHERE = "/etc/spark/conf"
CONFIGURATION = "own-conf"
# what a line of the user's own logging begins with
OWN = "own-logging"
LOGGING = f"""
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = {OWN} %p %c{{1}}: %m%n%ex
"""


def _elsewhere(pod: Object) -> None:
    """Let the driver read its configuration elsewhere, and the agent see it there.

    SPARK_CONF_DIR in the template's env would not do: Spark's own comes after it, and the last one counts.
    """
    mount = {"name": CONFIGURATION, "mountPath": ELSEWHERE, "readOnly": True}
    pod["spec"]["volumes"].append({"name": CONFIGURATION, "configMap": {"name": CONFIGURATION}})
    (driver,) = pod["spec"]["containers"]
    driver["command"] = ["/usr/bin/env", f"SPARK_CONF_DIR={ELSEWHERE}", *ENTRYPOINT]
    for container in (driver, agent_container(pod)):
        container["volumeMounts"].append(mount)
    set_variable(agent_container(pod), "SPARK_UI_AGENT_DRIVER_CONF_DIR", ELSEWHERE)


# what a user changes in the template
CASES: Mapping[str, Adjust | None] = {"as-made": None, "elsewhere": _elsewhere}


async def live_apache(cluster: Cluster, case: str) -> Operated:
    """Do what the operator does, its template changed as the case says."""
    namespace = f"apache-{uuid.uuid4().hex[:6]}"
    await create_spark_namespace(cluster, namespace)
    conf = {f"spark.kubernetes.driver.label.{name}": value for name, value in LABELS.items()}
    configuration = {"metadata": {"name": CONFIGURATION}, "data": {"log4j2.properties": LOGGING}}
    place = f"/api/v1/namespaces/{namespace}/configmaps"
    (await cluster.admin.request("POST", place, configuration)).ok()
    async with (
        recording(cluster.admin, namespace) as seen,
        played_in(cluster, Plan(ID, STEPS, "native", CASES[case], conf=conf), namespace, seen) as scene,
    ):
        return await operated(scene)
