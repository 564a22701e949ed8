"""One driver Pod as the agent meets it: a namespace, a Pod, a ServiceAccount with the documented Role, a way to the API.

The same scene is set on the real control plane and on the stand-in, by the demo and by the tests.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from sandbox.agent import AgentProcess, Place
from sandbox.apiclient import ApiClient, Object
from sandbox.audit import service_account_user
from sandbox.control_plane import ControlPlane
from sandbox.launch import REPOSITORY
from sandbox.netns import NetworkNamespace
from sandbox.pods import create_namespace, create_node, create_pod
from sandbox.rbac import Rule, service_account_with_role
from sandbox.relay import relay
from sandbox.spark.master import KubernetesMaster, LocalMaster, Master
from sandbox.standin import StandIn

_NUMBERS = itertools.count(1)
# Without a network of its own the driver is on this machine's; its loopback is refused as an endpoint's address.
_NO_NETWORK = "10.1.0.1"

# What Spark's own Kubernetes client asks for in client mode without executors.
SPARK_RULES = (
    Rule(
        ["pods", "configmaps", "services", "persistentvolumeclaims"],
        ["get", "list", "watch", "deletecollection"],
    ),
)


def documented_rules() -> list[Rule]:
    """The rules of the Role that deploy/ ships."""
    role = next(
        doc
        for doc in yaml.safe_load_all((REPOSITORY / "deploy/rbac.yaml").read_text())
        if doc["kind"] == "Role"
    )
    return [Rule(rule["resources"], rule["verbs"], rule["apiGroups"][0]) for rule in role["rules"]]


def hooked(directory: Path) -> dict[str, str]:
    """The driver's environment by which its logging takes in what the agent writes into ``directory``."""
    names = ["log4j2.properties", "log4j2.xml", "log4j2.yaml", "log4j2.json", "hook.xml"]
    return {"LOG4J_CONFIGURATION_FILE": ",".join(str(directory / name) for name in names)}


@dataclass(frozen=True)
class Stage:
    """What a scene may have of its own; the defaults make a Pod ``demo-driver`` in a namespace of its own."""

    namespace: str = ""
    pod: str = "demo-driver"
    application: str = ""
    host_network: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    pod_spec: Mapping[str, object] | None = None
    rules: Sequence[Rule] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scene:
    """A driver Pod on an API server: everything to start its driver and its agent, and to look at what comes of it."""

    api: ApiClient
    namespace: str
    pod: Object
    place: Place
    network: NetworkNamespace | None
    folder: Path
    spark_token: str = field(default="", repr=False)
    port_inside: int = 0

    @property
    def service(self) -> str:
        """The Service that the agent keeps unless told otherwise."""
        return self.place.pod.removesuffix("-driver") + "-ui"

    @property
    def application(self) -> str:
        """The Pod's application id."""
        return self.place.application

    @property
    def user(self) -> str:
        """The agent's ServiceAccount as the API server calls it."""
        return service_account_user(self.namespace, _account(self.place.pod))

    def master(self, version: str) -> Master:
        """A master under which the driver shows the Pod's application id: Spark 3.5 needs Kubernetes for that."""
        if version.startswith("3.") and self.spark_token:
            return KubernetesMaster(self.port_inside, self.place.ca_file, self.spark_token, self.namespace)
        return LocalMaster()

    @contextlib.asynccontextmanager
    async def agent(
        self,
        *,
        uid: int | None = None,
        directory: Path | None = None,
        module: str = "agent",
        env: Mapping[str, str] | None = None,
        **settings: str,
    ) -> AsyncIterator[AgentProcess]:
        """Run the agent of this Pod; ``settings`` are names after the prefix, ``module``, ``env``: `AgentProcess.start`."""
        place = replace(self.place, settings={**self.place.settings, **settings})
        own = directory or self.folder / f"agent-{next(_NUMBERS)}"
        own.mkdir(exist_ok=True)
        if uid is not None:
            os.chown(own, uid, uid)
        async with AgentProcess.start(
            place, own, network=self.network, uid=uid, module=module, env=env
        ) as agent:
            yield agent


@contextlib.asynccontextmanager
async def on_control_plane(
    plane: ControlPlane, network: NetworkNamespace | None, stage: Stage | None = None
) -> AsyncIterator[Scene]:
    """Set the scene on the real control plane."""
    async with _set(plane.admin, plane.url, plane.ca_file, network, stage or Stage()) as scene:
        yield scene


@contextlib.asynccontextmanager
async def on_stand_in(
    network: NetworkNamespace | None, stand_in: StandIn | None = None, stage: Stage | None = None
) -> AsyncIterator[Scene]:
    """Set the scene on the stand-in given, else on one of its own."""
    async with contextlib.AsyncExitStack() as stack:
        api = stand_in if stand_in is not None else await stack.enter_async_context(StandIn.start(tls=True))
        if api.ca_file is None:
            raise ValueError("the agent is to meet a stand-in with TLS")
        if not (await api.admin.request("GET", "/api/v1/nodes")).ok()["items"]:
            await create_node(api.admin)
        yield await stack.enter_async_context(
            _set(api.admin, api.url, api.ca_file, network, stage or Stage())
        )


def _account(pod: str) -> str:
    return f"{pod}-agent"


@contextlib.asynccontextmanager
async def _set(
    api: ApiClient, url: str, ca_file: Path, network: NetworkNamespace | None, stage: Stage
) -> AsyncIterator[Scene]:
    number = next(_NUMBERS)
    namespace = stage.namespace or f"scene-{os.getpid()}-{number}"
    application = stage.application or f"spark-{os.getpid():08x}{number:024x}"
    server = urlsplit(url)
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scene-")))
        folder.chmod(0o755)
        ip = network.address if network is not None else _NO_NETWORK
        host_ip = ip if stage.host_network else "192.0.2.1"
        if not stage.namespace:
            await create_namespace(api, namespace)
        pod = await create_pod(
            api,
            namespace,
            stage.pod,
            labels={"spark-app-selector": application, "spark-role": "driver", **stage.labels},
            ip=ip,
            host_ip=host_ip,
            spec=stage.pod_spec,
        )
        account = _account(stage.pod)
        token = await service_account_with_role(api, namespace, account, stage.rules or documented_rules())
        spark_token = await service_account_with_role(api, namespace, f"{stage.pod}-spark", SPARK_RULES)
        port = server.port or 443
        if network is not None:
            way = await stack.enter_async_context(relay(network, 0, server.hostname or "", port))
            port = way.port
        (folder / "token").write_text(token)
        (folder / "ca.crt").write_bytes(ca_file.read_bytes())
        place = Place(
            pod=stage.pod,
            uid=pod["metadata"]["uid"],
            namespace=namespace,
            application=application,
            url=f"https://127.0.0.1:{port}",
            token_file=folder / "token",
            ca_file=folder / "ca.crt",
            ip=ip,
            host_ip=host_ip,
            settings=dict(stage.settings),
        )
        yield Scene(api, namespace, pod, place, network, folder, spark_token, port)
