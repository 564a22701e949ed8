"""A cluster without sockets: the stand-in's store and API, with the Pods and Services that a test needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sandbox.standin import Access, Api, Reply, Request, Selection, Store
from sandbox.standin.patches import merge
from sandbox.standin.resources import (
    ENDPOINT_SLICES,
    NAMESPACES,
    PODS,
    RBAC_GROUP,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Object,
)
from sandbox.standin.status import StatusError
from tests.support.make import LABELS, NAMESPACE, POD, POD_IP

ALL_RIGHTS: Sequence[Object] = (
    {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "create", "patch", "delete"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
)


def running_pod(
    name: str = POD, labels: Mapping[str, str] = LABELS, *, ip: str = POD_IP, ready: bool = True
) -> Object:
    """A Pod as it is created; ours, unless it is told otherwise."""
    return {
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"containers": [{"name": "main", "image": "x"}]},
        "status": {
            "phase": "Running",
            "podIP": ip,
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


class Cluster:
    """One namespace with our Pod in it. Writes here are those of others: users, operators, kubelets."""

    def __init__(self, *, seed: int = 0, ip: str = POD_IP) -> None:
        self.store = Store(seed=seed)
        self.api = Api(self.store, Access(self.store.ledger))
        self.store.create(NAMESPACES, "", {"metadata": {"name": NAMESPACE}})
        self.uid = self.add_pod(ip=ip)
        self.token = self.api.access.admin_token

    def add_pod(
        self, name: str = POD, labels: Mapping[str, str] = LABELS, *, ip: str = POD_IP, ready: bool = True
    ) -> str:
        """A running Pod; its uid."""
        pod = running_pod(name, labels, ip=ip, ready=ready)
        uid: str = self.store.create(PODS, NAMESPACE, pod)["metadata"]["uid"]
        return uid

    def end_pod(self, name: str, phase: str = "Succeeded") -> None:
        """Its containers have ended, the Pod stays."""

        def ended(pod: Object) -> Object:
            return merge_object(pod, {"status": {"phase": phase}})

        self.store.update(PODS, NAMESPACE, name, ended, subresource="status")

    def remove_pod(self, name: str) -> None:
        """The Pod is deleted."""
        self.store.delete(PODS, NAMESPACE, name)

    def grant(self, rules: Sequence[Object], account: str = "spark") -> None:
        """From here on our token is that of a ServiceAccount with these rights alone."""
        place: Object = {"metadata": {"name": account}}
        subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
        role = {"apiGroup": RBAC_GROUP, "kind": "Role", "name": account}
        self.store.create(SERVICE_ACCOUNTS, NAMESPACE, place)
        self.store.create(ROLES, NAMESPACE, place | {"rules": list(rules)})
        self.store.create(ROLE_BINDINGS, NAMESPACE, place | {"roleRef": role, "subjects": [subject]})
        self.token = self.api.access.issue(NAMESPACE, account)

    def set_rules(self, rules: Sequence[Object], account: str = "spark") -> None:
        """The rights of `grant`, changed."""
        self.store.update(ROLES, NAMESPACE, account, lambda role: {**role, "rules": list(rules)})

    def add_service(self, live: Mapping[str, object], name: str = "ui") -> str:
        """A Service as `tests.support.make.service` gives it; its uid."""
        head = live["metadata"]
        assert isinstance(head, dict)
        kept = {key: value for key, value in head.items() if key not in ("uid", "resourceVersion")}
        uid: str = self._ask("POST", "", {**live, "metadata": {**kept, "name": name}})["metadata"]["uid"]
        self.store.settle()
        return uid

    def service(self, name: str = "ui") -> Object | None:
        """The Service as it stands."""
        try:
            return self.store.get(SERVICES, NAMESPACE, name)
        except StatusError:
            return None

    def patch(self, body: Object, name: str = "ui") -> None:
        """Another writer's merge-patch, without a resourceVersion; nothing where there is no such Service."""
        if self.service(name) is not None:
            self._ask("PATCH", f"/{name}", body)

    def land(self, body: Object, name: str = "ui") -> int:
        """A PATCH that was long on its way arrives now; the status that it is answered with."""
        return self._handle("PATCH", f"/{name}", body).status

    def delete(self, name: str = "ui") -> None:
        """Another writer deletes the Service."""
        self.store.delete(SERVICES, NAMESPACE, name)

    def revision(self, name: str = "ui") -> str:
        """The resourceVersion of the Service, "" without one."""
        live = self.service(name)
        return "" if live is None else str(live["metadata"]["resourceVersion"])

    def routes(self, name: str = "ui") -> set[tuple[str, int]]:
        """Pairs of Pod uid and port to which the Service leads, whatever their condition."""
        chosen = Selection.parse(ENDPOINT_SLICES, {"labelSelector": f"kubernetes.io/service-name={name}"})
        return {
            (endpoint["targetRef"]["uid"], port["port"])
            for piece in self.store.list(ENDPOINT_SLICES, NAMESPACE, chosen)
            for endpoint in piece.get("endpoints") or []
            for port in piece.get("ports") or []
        }

    def ports(self, name: str = "ui") -> set[int]:
        """The ports at which the Service leads to our Pod; none without a Service, whatever slices are left."""
        if self.service(name) is None:
            return set()
        return {port for uid, port in self.routes(name) if uid == self.uid}

    def _ask(self, method: str, path: str, body: Object) -> Object:
        reply = self._handle(method, path, body)
        assert reply.status < 300, reply.body
        assert isinstance(reply.body, dict)
        return reply.body

    def _handle(self, method: str, path: str, body: Object) -> Reply:
        kind = "merge-patch+json" if method == "PATCH" else "json"
        request = Request(
            method,
            f"/api/v1/namespaces/{NAMESPACE}/services{path}",
            body=json.dumps(body).encode(),
            content_type=f"application/{kind}",
            token=self.api.access.admin_token,
        )
        return self.api.handle(request)


def merge_object(old: Object, body: Object) -> Object:
    """A JSON merge-patch of an object."""
    merged = merge(old, body)
    assert isinstance(merged, dict)
    return merged
