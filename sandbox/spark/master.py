"""Where a driver takes its executors from: its own JVM, or a Kubernetes that is never asked for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class Master(Protocol):
    """What `SparkDriver` needs to know of a master."""

    @property
    def distributed(self) -> bool:
        """Whether there is anyone to run a task."""

    def conf(self, folder: Path) -> Mapping[str, str]:
        """Return the configuration to submit; files that it names are put into the driver's ``folder``."""


@dataclass(frozen=True)
class LocalMaster:
    """``local[N]``. Spark 3.5.9 takes no id here and calls itself ``local-<time>``."""

    cores: int = 2
    distributed: bool = True

    def conf(self, folder: Path) -> Mapping[str, str]:
        """Return the configuration to submit; no file."""
        del folder
        return {"spark.master": f"local[{self.cores}]"}


@dataclass(frozen=True)
class KubernetesMaster:
    """Client mode against an API server on 127.0.0.1 of the driver's own network, with no executor at all.

    All versions honour spark.app.id here. Dynamic allocation with zero executors lets the context start
    without waiting for resources and ask the API server for no Pod. ``token`` needs get, list, watch,
    and deletecollection on pods, configmaps, services and persistentvolumeclaims in ``namespace``.
    """

    port: int
    ca_file: Path
    token: str = field(repr=False)
    namespace: str = "default"
    distributed: bool = False

    def conf(self, folder: Path) -> Mapping[str, str]:
        """Return the configuration to submit."""
        ca_file = folder / "kubernetes-ca.crt"
        ca_file.write_bytes(self.ca_file.read_bytes())
        return {
            "spark.master": f"k8s://https://127.0.0.1:{self.port}",
            "spark.submit.deployMode": "client",
            "spark.kubernetes.namespace": self.namespace,
            "spark.kubernetes.authenticate.caCertFile": str(ca_file),
            "spark.kubernetes.authenticate.oauthToken": self.token,
            "spark.kubernetes.container.image": "none",
            "spark.kubernetes.executor.disableConfigMap": "true",
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": "0",
            "spark.dynamicAllocation.initialExecutors": "0",
        }
