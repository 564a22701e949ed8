"""What a container of the Spark image runs: ``driver ARGUMENTS...``, ``executor``, or any command.

Spark on Kubernetes passes these words and the variables below (KubernetesUtils, BasicDriverFeatureStep and
BasicExecutorFeatureStep of Spark 4.1). The file is copied into the image: standard library alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HOME = Path("/opt/spark")
BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
JAVA_OPTION = "SPARK_JAVA_OPT_"
# option of the backend: variable that Spark sets for it
EXECUTOR = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def driver(env: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """Return the command line of a driver: spark-submit in client mode, bound to the Pod's address."""
    address = env["SPARK_DRIVER_BIND_ADDRESS"]
    conf = [f"spark.driver.bindAddress={address}", f"spark.executorEnv.SPARK_DRIVER_POD_IP={address}"]
    options = [part for pair in conf for part in ("--conf", pair)]
    return [str(HOME / "bin/spark-submit"), *options, "--deploy-mode", "client", *arguments]


def executor(env: Mapping[str, str]) -> list[str]:
    """Return the command line of an executor."""
    numbered = {
        int(name.removeprefix(JAVA_OPTION)): env[name] for name in env if name.startswith(JAVA_OPTION)
    }
    memory = env["SPARK_EXECUTOR_MEMORY"]
    classpath = [str(HOME / "conf"), str(HOME / "jars/*"), env.get("SPARK_CLASSPATH", "")]
    java = ["java", *(numbered[number] for number in sorted(numbered)), f"-Xms{memory}", f"-Xmx{memory}"]
    options = [part for option, name in EXECUTOR.items() for part in (option, env[name])]
    return [*java, "-cp", ":".join(filter(None, classpath)), BACKEND, *options]


def main(arguments: Sequence[str]) -> None:
    """Become the command that ``arguments`` ask for."""
    libraries = [HOME / "python", *sorted((HOME / "python/lib").glob("py4j-*-src.zip"))]
    env = {
        "PYSPARK_PYTHON": "python3",
        **os.environ,
        "SPARK_HOME": str(HOME),
        "PATH": f"{HOME}/bin:{os.environ.get('PATH', os.defpath)}",
        "PYTHONPATH": os.pathsep.join(map(str, libraries)),
    }
    match arguments:
        case ["driver", *rest]:
            argv = driver(env, rest)
        case ["executor", *_]:
            argv = executor(env)
        case _:
            argv = list(arguments)
    os.execvpe(argv[0], argv, env)


if __name__ == "__main__":
    main(sys.argv[1:])
