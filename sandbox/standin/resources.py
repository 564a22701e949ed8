"""The resources that the stand-in serves, and how paths and kinds name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# A Kubernetes object as decoded from JSON. Its depth is the API's, so the leaves stay untyped.
Object = dict[str, Any]


@dataclass(frozen=True)
class Resource:
    """One kind of object. ``subresources`` are those with a path of their own, such as ``status``."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    subresources: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name that messages use: ``services``, ``endpointslices.discovery.k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


STATUS = frozenset({"status"})
RBAC_GROUP = "rbac.authorization.k8s.io"

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False, subresources=STATUS)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False, subresources=STATUS)
SERVICES = Resource("", "v1", "services", "Service", subresources=STATUS)
PODS = Resource("", "v1", "pods", "Pod", subresources=STATUS)
EVENTS = Resource("", "v1", "events", "Event")
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", subresources=frozenset({"token"}))
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
ROLES = Resource(RBAC_GROUP, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(RBAC_GROUP, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource(RBAC_GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(
    RBAC_GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
RULES_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
)

STORED = (
    NAMESPACES,
    NODES,
    SERVICES,
    PODS,
    EVENTS,
    ENDPOINTS,
    CONFIG_MAPS,
    SERVICE_ACCOUNTS,
    ENDPOINT_SLICES,
    ROLES,
    ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
)
# answered, never kept
REVIEWS = (ACCESS_REVIEWS, RULES_REVIEWS)

BY_PATH = {(resource.group, resource.version, resource.plural): resource for resource in STORED + REVIEWS}
BY_KIND = {(resource.api_version, resource.kind): resource for resource in STORED}
