"""What the API server makes of a Service: defaults, addresses, node ports, and what an update carries over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from sandbox.standin.resources import Object
from sandbox.standin.service_rules import NODE_PORTS, is_headless, needs_node_ports

CLUSTER_IPS = IPv4Network("10.96.0.0/16")


@dataclass
class Allocator:
    """Hands out cluster IPs and node ports, lowest first, past those that are taken."""

    ips: set[str] = field(default_factory=set)
    node_ports: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, services: Iterable[Object]) -> Allocator:
        """Return an allocator to which everything that ``services`` hold is taken."""
        taken = cls({str(CLUSTER_IPS[1])})
        for service in services:
            taken.ips.update(service["spec"].get("clusterIPs", []))
            taken.node_ports.update(node_ports(service["spec"]))
        return taken

    def ip(self) -> str:
        """Take the next free cluster IP."""
        found = next(str(host) for host in CLUSTER_IPS.hosts() if str(host) not in self.ips)
        self.ips.add(found)
        return found

    def node_port(self) -> int:
        """Take the next free node port."""
        found = next(port for port in NODE_PORTS if port not in self.node_ports)
        self.node_ports.add(found)
        return found


def node_ports(spec: Object) -> Iterator[int]:
    """Return the node ports that a Service holds."""
    yield from (port["nodePort"] for port in spec.get("ports", []) if "nodePort" in port)
    if "healthCheckNodePort" in spec:
        yield spec["healthCheckNodePort"]


def default(service: Object) -> None:
    """Fill in what was left out. A targetPort of 0, "" or null is left out too, and becomes ``port``."""
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports", []):
        port.setdefault("protocol", "TCP")
        port.setdefault("port", 0)
        port.setdefault("targetPort", port["port"])
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    service.setdefault("status", {"loadBalancer": {}})


def carry(new: Object, old: Object) -> None:
    """Carry over what the former state holds and the new one leaves out, and drop what its type forbids.

    A node port goes to the port of the same **name**; under another name a new one is made.
    """
    spec, former = new["spec"], old["spec"]
    if spec["type"] == "ExternalName":
        _drop(
            spec, former, ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
        )
    elif former["type"] != "ExternalName":
        _carry_addresses(spec, former)
    if needs_node_ports(spec) and needs_node_ports(former):
        held = {port.get("name", ""): port["nodePort"] for port in former["ports"] if "nodePort" in port}
        asked = set(node_ports(spec))
        for port in spec.get("ports", []):
            kept = held.get(port.get("name", ""))
            if "nodePort" not in port and kept is not None and kept not in asked:
                port["nodePort"] = kept
    elif not needs_node_ports(spec):
        held_ports = set(node_ports(former))
        for port in spec.get("ports", []):
            if port.get("nodePort") in held_ports:
                del port["nodePort"]
        _drop(spec, former, ("externalTrafficPolicy", "allocateLoadBalancerNodePorts"))
    if _needs_health_check(spec) and "healthCheckNodePort" in former:
        spec.setdefault("healthCheckNodePort", former["healthCheckNodePort"])
    elif not _needs_health_check(spec):
        _drop(spec, former, ("healthCheckNodePort",))
    if spec["type"] == "NodePort":
        _drop(spec, former, ("allocateLoadBalancerNodePorts",))


def families(service: Object) -> None:
    """Fill in the IP families. A headless Service without a selector gets both, on every cluster."""
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    bare = is_headless(spec) and not spec.get("selector")
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if bare else "SingleStack")
    both = bare and spec["ipFamilyPolicy"] == "RequireDualStack"
    spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if both else ["IPv4"])


def allocate(service: Object, allocator: Allocator) -> None:
    """Give a valid Service the addresses and node ports that it lacks."""
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    if "clusterIP" not in spec:
        spec["clusterIP"] = allocator.ip()
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if needs_node_ports(spec):
        for port in spec.get("ports", []):
            if "nodePort" not in port:
                port["nodePort"] = allocator.node_port()
    if _needs_health_check(spec) and "healthCheckNodePort" not in spec:
        spec["healthCheckNodePort"] = allocator.node_port()


def _carry_addresses(spec: Object, former: Object) -> None:
    if "clusterIP" not in spec:
        spec |= {key: former[key] for key in ("clusterIP", "clusterIPs")}
    elif spec["clusterIP"] != former["clusterIP"] or "clusterIPs" not in spec:
        spec["clusterIPs"] = [spec["clusterIP"]]
    for key in ("ipFamilies", "ipFamilyPolicy"):
        spec.setdefault(key, former[key])


def _drop(spec: Object, former: Object, keys: tuple[str, ...]) -> None:
    for key in keys:
        if key in spec and spec[key] == former.get(key):
            del spec[key]


def _needs_health_check(spec: Object) -> bool:
    return spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
