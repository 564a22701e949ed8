"""Decoding by type, as kube-apiserver decodes JSON into its structs: wrong types are refused, unknown fields drop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sandbox.standin.resources import Object
from sandbox.standin.schema import METADATA, SCHEMAS, Leaf, ListOf, MapOf, Schema, Struct


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
        head = _struct(Struct({"metadata": METADATA}), {"metadata": value.get("metadata")}, kind, "", unknown)
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
            unknown.append(below)
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
