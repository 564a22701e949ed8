"""Short ways to write down settings, listeners, facts and Services in tables of cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from agent.model import (
    Answered,
    Closed,
    Desired,
    Fact,
    HookBound,
    HookStopping,
    Listener,
    Park,
    Release,
    Scanned,
    Scheme,
    Serve,
    Taken,
    Verdict,
)
from agent.settings import PREFIX, Settings, load

APP = "spark-aaa"
OTHER_APP = "spark-bbb"
POD, POD_UID, POD_IP, NODE_IP, NAMESPACE = "drv-1", "uid-of-drv-1", "10.1.0.5", "192.0.2.1", "t"
DRIVER_UID = 185
LABELS = {"spark-app-selector": APP, "spark-role": "driver", "uid-tag": "drv-1"}
OWN = {"spark-app-selector": APP, "spark-role": "driver"}
MARK = {"spark-ui-agent/application": APP}  # on a Service that is our application's

Object = dict[str, object]


def settings(
    chosen: Mapping[str, str] = MappingProxyType({}),
    *,
    host_network: bool = False,
    app: str = APP,
    name: str = POD,
    uid: str = POD_UID,
    **more: str,
) -> Settings:
    """Settings of the Pod `name`; `chosen` and `more` are ours, without their prefix."""
    given = {**chosen, **more}
    env = {
        "POD_NAME": name,
        "POD_NAMESPACE": NAMESPACE,
        "POD_UID": uid,
        "POD_IP": NODE_IP if host_network else POD_IP,
        "HOST_IP": NODE_IP,
        "SPARK_APPLICATION_ID": app,
        "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    }
    if "SERVICE" not in given and "SERVICE_LABELS" not in given:
        given["SERVICE"] = "ui"
    return load(env | {PREFIX + name: value for name, value in given.items()}, own_uid=DRIVER_UID)


def listener(port: int, inode: int = 0, *, uid: int = DRIVER_UID, address: str = "::") -> Listener:
    """A listening socket as the kernel reports Spark's UI; its inode is its port unless it is told."""
    return Listener(port=port, address=address, uid=uid, inode=inode or port, backlog=1)


def scan(*sockets: int | Listener) -> Scanned:
    """The socket table holds exactly these."""
    return Scanned(frozenset(item if isinstance(item, Listener) else listener(item) for item in sockets))


def answered(
    port: int, taken: Taken, *, inode: int = 0, app: str | None = None, started: int = 0, tls: bool = False
) -> Answered:
    """The listener at `port` was asked, and this is what its answer was taken for."""
    scheme = Scheme.HTTPS if tls else Scheme.HTTP
    return Answered(listener(port, inode), scheme, Verdict(taken, "", app, started))


def ours(port: int, *, inode: int = 0, started: int = 0, tls: bool = False) -> Answered:
    """The listener at `port` lists our application and no other."""
    return answered(port, Taken.OURS, inode=inode, app=APP, started=started, tls=tls)


def bound(port: int, *, pid: int = 7, tls: bool = False, inode: int = 0, listening: bool = True) -> HookBound:
    """The JVM `pid` said that its UI bound `port`."""
    scheme = Scheme.HTTPS if tls else Scheme.HTTP
    return HookBound(pid, port, scheme, listener(port, inode) if listening else None)


def shown(desired: Desired) -> str:
    """A Desired in short: ``4040/http/rest``, ``park:searching`` or ``release``."""
    match desired:
        case Serve():
            return f"{desired.port}/{desired.scheme}/{desired.proof}"
        case Park():
            return f"park:{desired.why.code}"
        case Release():
            return "release"


def port(target: int | str = 4040, *, name: str = "http-ui", number: int = 80, **more: object) -> Object:
    """One entry of a Service's ports, with the defaults that the API server fills in."""
    return {"name": name, "port": number, "protocol": "TCP", "targetPort": target, **more}


def service(
    *,
    selector: Mapping[str, str] | None = None,
    ports: Sequence[Mapping[str, object]] = (),
    annotations: Mapping[str, str] | None = None,
    metadata: Mapping[str, object] | None = None,
    **spec: object,
) -> Object:
    """A live Service `ui` as the API shows it, routing to nobody unless `selector` says so."""
    chosen = {"ui-none": "none"} if selector is None else selector
    head: Object = {"name": "ui", "namespace": NAMESPACE, "uid": "uid-of-ui", "resourceVersion": "10"}
    head["labels"] = {"k": "v"}
    if annotations:
        head["annotations"] = dict(annotations)
    body: Object = {"type": "ClusterIP", "ports": list(ports) or [port()], **spec}
    if chosen:
        body["selector"] = dict(chosen)
    return {"apiVersion": "v1", "kind": "Service", "metadata": {**head, **(metadata or {})}, "spec": body}


def adoptable() -> Object:
    """A Service that is idle and carries our application's mark: ours to take."""
    return service(selector={}, annotations=MARK)


def pod(labels: Mapping[str, str] | None = None, *, uid: str = POD_UID) -> Object:
    """Our own Pod as the API shows it."""
    head = {"name": POD, "namespace": NAMESPACE, "uid": uid, "labels": LABELS if labels is None else labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "status": {"phase": "Running"}}


__all__ = [
    "APP",
    "LABELS",
    "MARK",
    "NAMESPACE",
    "NODE_IP",
    "OTHER_APP",
    "OWN",
    "POD",
    "POD_IP",
    "POD_UID",
    "Closed",
    "Fact",
    "HookStopping",
    "Object",
    "adoptable",
    "answered",
    "bound",
    "listener",
    "ours",
    "pod",
    "port",
    "scan",
    "service",
    "settings",
    "shown",
]
