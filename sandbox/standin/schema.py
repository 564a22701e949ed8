"""Decoding by type, as kube-apiserver decodes JSON into its structs: wrong types are refused, unknown fields drop.

Described as far as clients of Services and Events can see it; of other kinds the metadata alone is typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sandbox.standin.resources import Object

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
_METADATA = Struct(
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
    "Service": Struct({**_TYPE, "metadata": _METADATA, "spec": _SERVICE_SPEC, "status": "any"}),
    "Event": Struct(
        {
            **_TYPE,
            "metadata": _METADATA,
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


class DecodeError(Exception):
    """A value of the wrong type. The text is worded like Go's, but for the name of the struct."""


@dataclass
class Decoded:
    """A decoded object, and the paths of the fields that its type does not have."""

    object: Object
    unknown: list[str] = field(default_factory=list)


def decode(kind: str, value: Object) -> Decoded:
    """Decode an object of ``kind``; raise `DecodeError` where a value has the wrong type.

    As in Go, null and an empty value are one and the same and both are left out.
    """
    unknown: list[str] = []
    if kind in SCHEMAS:
        decoded = _struct(SCHEMAS[kind], value, kind, "", unknown)
    else:
        rest = {key: item for key, item in value.items() if key != "metadata" and item is not None}
        head = _struct(
            Struct({"metadata": _METADATA}), {"metadata": value.get("metadata")}, kind, "", unknown
        )
        decoded = rest | head
    decoded.setdefault("metadata", {})
    return Decoded(decoded, unknown)


def _struct(schema: Struct, value: object, kind: str, path: str, unknown: list[str]) -> Object:
    if not isinstance(value, dict):
        raise _mismatch(value, kind, path, "struct")
    found: Object = {}
    for key, item in value.items():
        below = f"{path}.{key}" if path else key
        if key not in schema.fields:
            # a null never reaches the decoder of a merge-patch, and in a POST it decodes to nothing
            unknown.extend([below] if item is not None else [])
            continue
        if item is None:
            continue
        taken = _value(schema.fields[key], item, kind, below, unknown)
        if key in schema.kept or not _is_empty(taken, schema.fields[key]):
            found[key] = taken
    return found


def _value(schema: Schema, value: object, kind: str, path: str, unknown: list[str]) -> object:
    match schema:
        case Struct():
            return _struct(schema, value, kind, path, unknown)
        case ListOf(item=item):
            if not isinstance(value, list):
                raise _mismatch(value, kind, path, "[]")
            return [
                _value(item, entry, kind, f"{path}[{index}]", unknown) for index, entry in enumerate(value)
            ]
        case MapOf(value=item):
            if not isinstance(value, dict):
                raise _mismatch(value, kind, path, "map")
            return {
                key: _value(item, entry, kind, path, unknown)
                for key, entry in value.items()
                if entry is not None
            }
        case "any":
            return value
        case _:
            return _leaf(schema, value, kind, path)


def _leaf(schema: Leaf, value: object, kind: str, path: str) -> object:
    types: Mapping[str, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "bool": (bool,),
        "flag": (bool,),
        "port|name": (int, str),
    }
    # a bool is an int to Python, not to JSON
    if not isinstance(value, types[schema]) or (isinstance(value, bool) and bool not in types[schema]):
        raise _mismatch(value, kind, path, schema)
    return value


def _is_empty(value: object, schema: Schema) -> bool:
    if schema == "bool" or isinstance(schema, Struct):
        return False  # a pointer or a struct: Go writes it out when it was given
    return schema != "any" and value in ("", 0, False, [], {})


def _mismatch(value: object, kind: str, path: str, wanted: str) -> DecodeError:
    names = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    return DecodeError(
        f"json: cannot unmarshal {names.get(type(value), 'null')} into Go struct field {kind}.{path} of type {wanted}"
    )
