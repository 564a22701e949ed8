"""Services, and the EndpointSlices that the controllers make of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sandbox.apiclient import DEFAULT_SECONDS, ApiClient, Object
from sandbox.waiting import wait_until


def services(namespace: str, name: str = "") -> str:
    """Return the API path of the Services of ``namespace``, or of one of them."""
    return f"/api/v1/namespaces/{namespace}/services" + (f"/{name}" if name else "")


def endpoint_slices(namespace: str, name: str = "") -> str:
    """Return the API path of the EndpointSlices of ``namespace``, or of one of them."""
    collection = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    return collection + (f"/{name}" if name else "")


def events(namespace: str) -> str:
    """Return the API path of the (core/v1) Events of ``namespace``."""
    return f"/api/v1/namespaces/{namespace}/events"


async def create_service(
    api: ApiClient,
    namespace: str,
    name: str,
    *,
    selector: Mapping[str, str] | None = None,
    port: int = 4040,
    target_port: int | str | None = None,
    port_name: str = "spark-ui",
    metadata: Mapping[str, object] | None = None,
    spec: Mapping[str, object] | None = None,
) -> Object:
    """Create a Service with one port; ``metadata`` and ``spec`` are laid over that, key by key."""
    entry: Object = {"name": port_name, "port": port}
    if target_port is not None:
        entry["targetPort"] = target_port
    body: Object = {
        "metadata": {"name": name, **(metadata or {})},
        "spec": {
            "ports": [entry],
            **({"selector": dict(selector)} if selector is not None else {}),
            **(spec or {}),
        },
    }
    return (await api.request("POST", services(namespace), body)).ok()


def of_service(service: str) -> dict[str, str]:
    """Return the query that narrows EndpointSlices to those of one Service."""
    return {"labelSelector": f"kubernetes.io/service-name={service}"}


async def get_slices(api: ApiClient, namespace: str, service: str) -> list[Object]:
    """Return the EndpointSlices of a Service."""
    answer = await api.request("GET", endpoint_slices(namespace), params=of_service(service))
    items: list[Object] = answer.ok()["items"]
    return items


def routes(slices: Iterable[Object], *, ready: bool = True) -> set[tuple[str, int]]:
    """Return the (address, port) pairs to which these slices route: endpoints that are ready, or all with ``ready`` False.

    Of a Service none of whose endpoints is ready kube-proxy serves those that terminate but still serve.
    """
    return {
        (address, port["port"])
        for item in slices
        for endpoint in item.get("endpoints") or []
        # discovery/v1: absent counts as ready
        if not ready or endpoint.get("conditions", {}).get("ready") is not False
        for address in endpoint["addresses"]
        for port in item.get("ports") or []
    }


async def wait_for_routes(
    api: ApiClient,
    namespace: str,
    service: str,
    expected: set[tuple[str, int]],
    *,
    within: float = DEFAULT_SECONDS,
) -> list[Object]:
    """Wait until a Service routes to exactly ``expected`` (the empty set: to nothing); return its slices."""
    return await wait_until(
        api,
        endpoint_slices(namespace),
        lambda slices: routes(slices) == expected,
        params=of_service(service),
        within=within,
    )
