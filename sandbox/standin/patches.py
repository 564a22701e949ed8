"""The three kinds of patch that kube-apiserver takes, as plain functions on decoded JSON."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from sandbox.standin.resources import Object
from sandbox.standin.status import StatusError

# The lists that strategic merge does not replace, and the key by which it matches their items.
MERGE_KEYS: Mapping[str, str] = {
    "metadata.ownerReferences": "uid",
    "spec.ports": "port",
    "spec.containers": "name",
    "status.conditions": "type",
    "status.podIPs": "ip",
}


def merge(target: object, patch: object) -> object:
    """Apply a JSON merge-patch (RFC 7386): maps merge, null deletes, everything else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def strategic(target: object, patch: object, path: str = "") -> object:
    """Apply a strategic merge-patch: as `merge`, but some lists merge item by item, by their key.

    Of the directives, ``$patch: replace`` and ``$patch: delete`` (on an item of such a list) are known.
    """
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    if patch.get("$patch") == "replace":
        return {key: copy.deepcopy(value) for key, value in patch.items() if key != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        below = f"{path}.{key}" if path else key
        if value is None:
            merged.pop(key, None)
        elif below in MERGE_KEYS and isinstance(value, list):
            merged[key] = _merge_items(merged.get(key), value, MERGE_KEYS[below])
        else:
            merged[key] = strategic(merged.get(key), value, below)
    return merged


def operations(target: Object, steps: list[Object]) -> object:
    """Apply a JSON-patch (RFC 6902): add, remove, replace, test.

    Raises `StatusError` 422 where a step does not fit the object, as kube-apiserver does.
    """
    document: object = copy.deepcopy(target)
    for step in steps:
        try:
            document = _step(document, step)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            message = f"the server rejected our request due to an error in our request: {error}"
            raise StatusError(422, "Invalid", message, {}) from error
    return document


def _merge_items(items: object, patches: list[object], key: str) -> list[object]:
    merged: list[object] = list(items) if isinstance(items, list) else []
    added: list[object] = []
    for patch in patches:
        if not isinstance(patch, dict):
            continue
        found = next(
            (
                index
                for index, item in enumerate(merged)
                if isinstance(item, dict) and item.get(key) == patch.get(key)
            ),
            None,
        )
        if patch.get("$patch") == "delete":
            if found is not None:
                del merged[found]
        elif found is None:
            added.append(copy.deepcopy(patch))
        else:
            merged[found] = strategic(merged[found], patch)
    return added + merged


def _step(document: object, step: Object) -> object:
    verb = step["op"]
    if step["path"] == "":
        return copy.deepcopy(step["value"])
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
    holder = document
    for part in parents:
        holder = _child(holder, part)
    match holder, verb:
        case dict(), "add" | "replace":
            # kube-apiserver replaces what is not there, against the RFC
            holder[last] = copy.deepcopy(step["value"])
        case dict(), "remove":
            del holder[last]
        case list(), "add":
            holder.insert(len(holder) if last == "-" else int(last), copy.deepcopy(step["value"]))
        case list(), "replace":
            holder[int(last)] = copy.deepcopy(step["value"])
        case list(), "remove":
            del holder[int(last)]
        case _, "test":
            if _child(holder, last) != step["value"]:
                raise ValueError(f"testing path {step['path']} value failed")
        case _:
            raise ValueError(f"Unexpected kind: {verb}")
    return document


def _child(holder: object, part: str) -> object:
    if isinstance(holder, dict):
        found: object = holder[part]
        return found
    if isinstance(holder, list):
        item: object = holder[int(part)]
        return item
    raise TypeError(f"no member {part}")
