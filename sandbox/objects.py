"""Kubernetes objects as the tests need them, made through the API alone: no kubelet, no scheduler.

Every function works alike against the real kube-apiserver and the stand-in, and raises `ApiError` for an
answer outside 2xx. Times are in seconds; waiting is by watch and ends in TimeoutError, which tells what was
seen last. This module is the one place to import them from.
"""

from sandbox.pods import (
    DRIVER_CONTAINER,
    NODE,
    create_namespace,
    create_node,
    create_pod,
    delete_pod,
    pods,
    set_pod_status,
)
from sandbox.rbac import Rule, service_account_with_role
from sandbox.services import (
    create_service,
    endpoint_slices,
    events,
    get_slices,
    of_service,
    routes,
    services,
    wait_for_routes,
)
from sandbox.waiting import wait_until

__all__ = [
    "DRIVER_CONTAINER",
    "NODE",
    "Rule",
    "create_namespace",
    "create_node",
    "create_pod",
    "create_service",
    "delete_pod",
    "endpoint_slices",
    "events",
    "get_slices",
    "of_service",
    "pods",
    "routes",
    "service_account_with_role",
    "services",
    "set_pod_status",
    "wait_for_routes",
    "wait_until",
]
