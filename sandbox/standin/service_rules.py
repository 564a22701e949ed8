"""When a Service is refused, worded as kube-apiserver 1.36 (a cluster with IPv4 alone) words it."""

from __future__ import annotations

from sandbox.standin import naming
from sandbox.standin.resources import Object
from sandbox.standin.status import Cause

NODE_PORTS = range(30000, 32768)
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS = ("SCTP", "TCP", "UDP")


def is_headless(spec: Object) -> bool:
    """Return whether a Service has no virtual address."""
    return spec.get("clusterIP") == "None"


def needs_node_ports(spec: Object) -> bool:
    """Return whether each port of a Service gets a node port."""
    return spec["type"] == "NodePort" or (
        spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
    )


def validate(service: Object, taken: set[int]) -> list[Cause]:
    """Return what is wrong with a Service that has its defaults; ``taken`` are other Services' node ports."""
    spec = service["spec"]
    causes = naming.labels("spec.selector", spec.get("selector", {}))
    if spec["type"] not in TYPES:
        causes.append(Cause.unsupported("spec.type", spec["type"], TYPES))
    if spec["sessionAffinity"] not in ("ClientIP", "None"):
        causes.append(
            Cause.unsupported("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))
        )
    causes += _ports(spec)
    causes += _node_ports(spec, taken)
    if spec["type"] == "ExternalName":
        if not spec.get("externalName"):
            causes.append(Cause.required("spec.externalName"))
        return causes
    return causes + _families(spec)


def validate_update(new: Object, old: Object) -> list[Cause]:
    """Return what of a Service may not change as it does: an address once given stays."""
    spec, former = new["spec"], old["spec"]
    if "ExternalName" in (spec["type"], former["type"]):
        return []
    if spec["clusterIPs"][:1] != former["clusterIPs"][:1]:
        return [Cause.invalid("spec.clusterIPs[0]", spec["clusterIPs"], "may not change once set")]
    return []


def _ports(spec: Object) -> list[Cause]:
    ports: list[Object] = spec.get("ports", [])
    if not ports and not is_headless(spec) and spec["type"] != "ExternalName":
        return [Cause.required("spec.ports")]
    causes: list[Cause] = []
    names: set[str] = set()
    numbers: set[tuple[int, str]] = set()
    for index, port in enumerate(ports):
        field = f"spec.ports[{index}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            causes.append(Cause.required(f"{field}.name"))
        elif name in names:
            causes.append(Cause.duplicate(f"{field}.name", name))
        elif name:
            causes += naming.label(f"{field}.name", name)
        names.add(name)
        causes += naming.port_number(f"{field}.port", port["port"])
        causes += _target(f"{field}.targetPort", port["targetPort"])
        if port["protocol"] not in PROTOCOLS:
            causes.append(Cause.unsupported(f"{field}.protocol", port["protocol"], PROTOCOLS))
        if "appProtocol" in port:
            causes += naming.qualified(f"{field}.appProtocol", port["appProtocol"])
        causes += _duplicate(field, port, numbers)
    return causes


def _duplicate(field: str, port: Object, seen: set[tuple[int, str]]) -> list[Cause]:
    number = (port["port"], port["protocol"])
    if number not in seen:
        seen.add(number)
        return []
    shown = {
        "Name": "",
        "Protocol": port["protocol"],
        "AppProtocol": None,
        "Port": port["port"],
        "TargetPort": 0,
        "NodePort": 0,
    }
    return [Cause.duplicate(field, shown)]


def _target(field: str, target: int | str) -> list[Cause]:
    return naming.port_number(field, target) if isinstance(target, int) else naming.port_name(field, target)


def _node_ports(spec: Object, taken: set[int]) -> list[Cause]:
    causes: list[Cause] = []
    seen = set(taken)
    for index, port in enumerate(spec.get("ports", [])):
        asked = port.get("nodePort")
        field = f"spec.ports[{index}].nodePort"
        if asked is None:
            continue
        if spec["type"] in ("ClusterIP", "ExternalName"):
            causes.append(Cause.forbidden(field, f"may not be used when `type` is '{spec['type']}'"))
        elif asked not in NODE_PORTS:
            span = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            detail = f"provided port is not in the valid range. The range of valid ports is {span}"
            causes.append(Cause.invalid(field, asked, detail))
        elif asked in seen:
            causes.append(Cause.invalid(field, asked, "provided port is already allocated"))
        seen.add(asked)
    return causes


def _families(spec: Object) -> list[Cause]:
    if is_headless(spec) and not spec.get("selector"):
        return []  # nobody but its author makes endpoints for it, of any family
    causes = []
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        causes.append(Cause.invalid("spec.ipFamilyPolicy", "RequireDualStack", detail))
    return causes + [
        Cause.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(spec["ipFamilies"])
        if family != "IPv4"
    ]
