"""The types of objects, as far as clients of Services and Events can see them; of other kinds the metadata alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# A leaf is the name of its type. "flag" is a bool that is left out when false, "any" is taken as it is,
# "port|name" is an int or a string. A Map holds one type under free keys.
Leaf = str


@dataclass(frozen=True)
class ListOf:
    """A list whose items are all of one type."""

    item: Schema


@dataclass(frozen=True)
class MapOf:
    """A map of free keys to values of one type."""

    value: Schema


@dataclass(frozen=True)
class Struct:
    """A struct. Fields in ``kept`` are written out even when empty."""

    fields: Mapping[str, Schema]
    kept: frozenset[str] = frozenset()


Schema = Leaf | ListOf | MapOf | Struct

_OWNER = Struct(
    {
        "apiVersion": "string",
        "kind": "string",
        "name": "string",
        "uid": "string",
        "controller": "bool",
        "blockOwnerDeletion": "bool",
    },
    kept=frozenset({"apiVersion", "kind", "name", "uid"}),
)
METADATA = Struct(
    {
        "name": "string",
        "generateName": "string",
        "namespace": "string",
        "selfLink": "string",
        "uid": "string",
        "resourceVersion": "string",
        "generation": "integer",
        "creationTimestamp": "string",
        "deletionTimestamp": "string",
        "deletionGracePeriodSeconds": "integer",
        "labels": MapOf("string"),
        "annotations": MapOf("string"),
        "ownerReferences": ListOf(_OWNER),
        "finalizers": ListOf("string"),
        "managedFields": "any",
    },
)
_SERVICE_PORT = Struct(
    {
        "name": "string",
        "protocol": "string",
        "appProtocol": "string",
        "port": "integer",
        "targetPort": "port|name",
        "nodePort": "integer",
    },
    kept=frozenset({"port"}),
)
_SERVICE_SPEC = Struct(
    {
        "ports": ListOf(_SERVICE_PORT),
        "selector": MapOf("string"),
        "clusterIP": "string",
        "clusterIPs": ListOf("string"),
        "type": "string",
        "externalIPs": ListOf("string"),
        "sessionAffinity": "string",
        "loadBalancerIP": "string",
        "loadBalancerSourceRanges": ListOf("string"),
        "externalName": "string",
        "externalTrafficPolicy": "string",
        "healthCheckNodePort": "integer",
        "publishNotReadyAddresses": "flag",
        "sessionAffinityConfig": "any",
        "ipFamilies": ListOf("string"),
        "ipFamilyPolicy": "string",
        "allocateLoadBalancerNodePorts": "bool",
        "loadBalancerClass": "string",
        "internalTrafficPolicy": "string",
        "trafficDistribution": "string",
    },
)
_EVENT_OBJECT = Struct(
    dict.fromkeys(
        ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"), "string"
    )
)
_TYPE = {"kind": "string", "apiVersion": "string"}

SCHEMAS: Mapping[str, Struct] = {
    "Service": Struct({**_TYPE, "metadata": METADATA, "spec": _SERVICE_SPEC, "status": "any"}),
    "Event": Struct(
        {
            **_TYPE,
            "metadata": METADATA,
            "involvedObject": _EVENT_OBJECT,
            "related": _EVENT_OBJECT,
            "source": Struct({"component": "string", "host": "string"}),
            "series": Struct({"count": "integer", "lastObservedTime": "string"}),
            "count": "integer",
            **dict.fromkeys(
                (
                    "reason",
                    "message",
                    "firstTimestamp",
                    "lastTimestamp",
                    "type",
                    "eventTime",
                    "action",
                    "reportingComponent",
                    "reportingInstance",
                ),
                "string",
            ),
        },
        kept=frozenset({"involvedObject", "metadata"}),
    ),
}
