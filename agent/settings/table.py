"""Every setting once: its name, default, parser and meaning. The loader, `check` and docs/settings.md use this table.

No name ends in `_PORT`, `_SERVICE_HOST` or `_SERVICE_PORT`: Kubernetes service links would shadow those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..paths import DIR
from . import values
from .shape import IN_CLUSTER


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the contract: the name after the prefix, its default as text, its parser, its meaning."""

    name: str
    default: str
    parse: Callable[[str], object]
    meaning: str


TABLE: tuple[Setting, ...] = (
    Setting(
        "SERVICE",
        "",
        values.service,
        "The Service to keep. Default: the Pod name, `-driver` cut, `-ui` added (dots become `-`, a leading digit "
        "gets `ui-`, 63 characters at most by a hash); for a Pod labelled `sparkoperator.k8s.io/app-name` "
        "`<app>-ui-svc` first",
    ),
    Setting(
        "SERVICE_LABELS",
        "",
        values.label_pairs,
        "Find the Service by labels instead (`k=v,k=v`; needs the verb list)",
    ),
    Setting("CREATE", "true", values.boolean, "Create the Service when it is missing: `true` or `false`"),
    Setting(
        "CREATE_LABELS",
        "app.kubernetes.io/managed-by=spark-ui-agent",
        values.label_pairs,
        "Labels of a created Service (`k=v,k=v`)",
    ),
    Setting(
        "CREATE_ANNOTATIONS",
        "",
        values.annotation_pairs,
        "Annotations of a created Service (`k=v,k=v`, a comma inside a value written `\\,`), such as the one that "
        "makes a load balancer internal",
    ),
    Setting(
        "ADOPT",
        "own",
        values.one_of("own", "any"),
        "Which existing Service may be taken: `own` (it selects this Pod or carries our mark) or `any`",
    ),
    Setting(
        "SERVICE_TYPE",
        "ClusterIP",
        values.one_of("ClusterIP", "NodePort", "LoadBalancer"),
        "Type of a created Service: `ClusterIP`, `NodePort` or `LoadBalancer`",
    ),
    Setting("EXPOSE", "4040", values.port, "Port of a created Service"),
    Setting(
        "PORT_NAME",
        "spark-ui",
        values.port_name,
        "Port name of a created Service; also picks the entry of an adopted one that has several",
    ),
    Setting(
        "SELECTOR",
        "",
        values.label_pairs,
        "Labels that select this Pod alone (`k=v,k=v`). Default: `spark-app-selector=<application id>,"
        "spark-role=driver`, else the StatefulSet's `statefulset.kubernetes.io/pod-name`",
    ),
    Setting(
        "SCHEME",
        "auto",
        values.one_of("auto", "http", "https"),
        "Which UI port to publish: `auto` (the one that serves), `http` or `https`",
    ),
    Setting(
        "FILTERED_UI",
        "refuse",
        values.one_of("refuse", "socket"),
        "A UI that answers 401 or 403 and has no log hook: `refuse` it, or take the `socket` of the driver's uid "
        "as proof (refused under hostNetwork)",
    ),
    Setting(
        "CONTEXTS",
        "newest",
        values.one_of("newest", "first", "only"),
        "Several proven UIs in one Pod: serve the `newest`, the `first`, or `only` a single one (else blocked)",
    ),
    Setting(
        "DRIVER_CONTAINER",
        "spark-kubernetes-driver",
        values.container,
        "The container whose end is the driver's end",
    ),
    Setting("DRIVER_UID", "", values.uid, "User id of the driver's sockets. Default: the agent's own"),
    Setting("DIR", DIR, values.path, "The in-memory volume shared with the driver"),
    Setting(
        "DRIVER_CONF_DIR",
        "",
        values.path,
        "The driver's conf directory as mounted in this container. Default: unset",
    ),
    Setting(
        "HOOK",
        "auto",
        values.one_of("auto", "on", "off"),
        "The log hook: `auto` (when DRIVER_CONF_DIR is set), `on` (with Spark's default logging where no conf is "
        "seen) or `off`",
    ),
    Setting(
        "HOOK_TIMEOUT",
        "2s",
        values.seconds(0.1, 30),
        "Longest that the driver's stop() may wait for us, once",
    ),
    Setting(
        "GUARD",
        "auto",
        values.one_of("auto", "off"),
        "Keep a freed UI port from other drivers until the endpoints are gone: `auto` (under hostNetwork) or `off`",
    ),
    Setting(
        "SETTLE", "2s", values.seconds(0, 60), "How long the guard stays beyond the empty endpoint slice"
    ),
    Setting(
        "HEALTH_ADDRESS",
        "auto",
        values.address,
        "Where the HTTP endpoints listen: `auto` (`0.0.0.0:4900`, or `[::]:4900` where the Pod has an IPv6 address; "
        "under hostNetwork `127.0.0.1:0`), IP:port or `off`",
    ),
    Setting(
        "MODE",
        "native",
        values.one_of("native", "plain"),
        "`native` sidecar, or `plain` container, which ends by itself after the driver; the template sets it",
    ),
    Setting("TOKEN_FILE", str(IN_CLUSTER / "token"), values.path, "ServiceAccount token"),
    Setting("CA_FILE", str(IN_CLUSTER / "ca.crt"), values.path, "Certificate authority of the API server"),
    Setting("NAMESPACE", "", values.namespace, "Namespace of Pod and Service. Default: the Pod's own"),
    Setting(
        "LOG_LEVEL",
        "info",
        values.one_of("debug", "info", "warning", "error"),
        "`debug`, `info`, `warning` or `error`",
    ),
    Setting(
        "LOG_FORMAT",
        "auto",
        values.one_of("auto", "json", "console"),
        "`json`, `console`, or `auto`: console on a terminal",
    ),
)
