"""Reading JSON objects whose shape the API server vouches for, without trusting it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Json = Mapping[str, object]


def at(obj: object, *path: str) -> object:
    """The value under `path`, or None where any step of it is missing."""
    for key in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(key)
    return obj


def text(obj: object, *path: str) -> str:
    """The string under `path`; anything else is ""."""
    found = at(obj, *path)
    return found if isinstance(found, str) else ""


def mapping(obj: object, *path: str) -> dict[str, object]:
    """A copy of the object under `path`; anything else is {}."""
    found = at(obj, *path)
    return {str(key): value for key, value in found.items()} if isinstance(found, Mapping) else {}


def strings(obj: object, *path: str) -> dict[str, str]:
    """The string values of the object under `path`, such as labels or a selector."""
    return {key: value for key, value in mapping(obj, *path).items() if isinstance(value, str)}


def items(obj: object, *path: str) -> list[dict[str, object]]:
    """The objects of the list under `path`; anything else is []."""
    found = at(obj, *path)
    if not isinstance(found, Sequence) or isinstance(found, str | bytes):
        return []
    return [mapping(item) for item in found if isinstance(item, Mapping)]
