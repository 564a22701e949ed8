"""Waiting for a state of the API by list and watch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence

from sandbox.apiclient import DEFAULT_SECONDS, ApiClient, Object

# characters of the objects in a message
_LONGEST = 4000


async def wait_until(
    api: ApiClient,
    path: str,
    predicate: Callable[[Sequence[Object]], bool],
    *,
    params: Mapping[str, str] | None = None,
    within: float = DEFAULT_SECONDS,
) -> list[Object]:
    """Wait until ``predicate`` holds for the objects of the collection ``path``; return them.

    ``params`` narrows the collection (labelSelector, fieldSelector). The predicate sees the list and then the
    state after each event of a watch, so no state in between is missed. After ``within`` seconds
    TimeoutError, with what was seen last.
    """
    objects: dict[str, Object] = {}
    try:
        async with asyncio.timeout(within):
            while True:
                listed = (await api.request("GET", path, params=params, within=within)).ok()
                objects = {item["metadata"]["name"]: item for item in listed["items"]}
                if predicate(list(objects.values())):
                    return list(objects.values())
                query = {**(params or {}), "resourceVersion": listed["metadata"]["resourceVersion"]}
                async with api.watch(path, query, within=within) as stream:
                    async for event in stream:
                        if event.type == "ERROR":  # the version is too old to go on from: list again
                            break
                        if event.type == "DELETED":
                            objects.pop(event.object["metadata"]["name"], None)
                        else:
                            objects[event.object["metadata"]["name"]] = event.object
                        if predicate(list(objects.values())):
                            return list(objects.values())
    except TimeoutError:
        seen = json.dumps([_told(one) for one in objects.values()])[:_LONGEST]
        raise TimeoutError(f"{path} not as wanted within {within} s; last seen: {seen}") from None


def _told(one: Object) -> Object:
    """What a person looks for first comes first, and who wrote which field not at all."""
    metadata = {name: value for name, value in one["metadata"].items() if name != "managedFields"}
    return {"name": metadata["name"], "status": one.get("status"), **one, "metadata": metadata}
