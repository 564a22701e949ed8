"""Versioned objects and the history of their changes: what etcd and the watch cache are to the API server."""

from __future__ import annotations

import copy
import random
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sandbox.standin.resources import Object, Resource
from sandbox.standin.status import expired

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
HISTORY = 10_000
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True)
class Key:
    """Where one object stands; ``namespace`` is empty for objects of the whole cluster."""

    resource: Resource
    namespace: str
    name: str


@dataclass(frozen=True)
class Change:
    """One write. ``before`` is None when the object is new; ``object`` is its last state when deleted."""

    revision: int
    type: str
    key: Key
    object: Object
    before: Object | None


class Ledger:
    """Objects by key. What goes in and what comes out are copies: nobody changes a stored object in place.

    ``revision`` rises by one with each write and is the resourceVersion of what was written. The last
    ``history`` changes are kept for watches. ``seed`` fixes uids and generated names.
    """

    def __init__(self, history: int = HISTORY, seed: int = 0) -> None:
        self.revision = 1
        self._random = random.Random(seed)
        self._objects: dict[Key, Object] = {}
        self._changes: deque[Change] = deque(maxlen=history)
        self._forgotten = 0
        self._listeners: list[Callable[[], None]] = []

    def get(self, key: Key) -> Object | None:
        """Return the object at ``key``, None when there is none."""
        return copy.deepcopy(self._objects.get(key))

    def find(self, resource: Resource, namespace: str | None = None) -> list[Object]:
        """Return the objects of a resource by namespace and name, of all namespaces when that is None."""
        return copy.deepcopy(
            [
                self._objects[key]
                for key in sorted(self._keys(resource, namespace), key=lambda key: (key.namespace, key.name))
            ]
        )

    def everything(self) -> list[tuple[Key, Object]]:
        """Return every key with its object."""
        return [(key, copy.deepcopy(value)) for key, value in self._objects.items()]

    def put(self, key: Key, value: Object) -> Object:
        """Store an object under the next revision, and return it as stored."""
        before = self._objects.get(key)
        stored = copy.deepcopy(value)
        self.revision += 1
        stored["metadata"]["resourceVersion"] = str(self.revision)
        self._objects[key] = stored
        self._record(ADDED if before is None else MODIFIED, key, stored, before)
        return copy.deepcopy(stored)

    def remove(self, key: Key, last: Object | None = None) -> Object:
        """Remove the object at ``key`` and return it as it was, or as ``last`` says, under a new revision."""
        before = self._objects.pop(key)
        gone = copy.deepcopy(before if last is None else last)
        self.revision += 1
        gone["metadata"]["resourceVersion"] = str(self.revision)
        self._record(DELETED, key, gone, before)
        return copy.deepcopy(gone)

    def since(self, revision: int) -> list[Change]:
        """Return the changes after ``revision``; raise the 410 Expired when some of them are forgotten."""
        if revision < self._forgotten:
            raise expired()
        return [change for change in self._changes if change.revision > revision]

    def forget(self) -> None:
        """Drop the history, as a compaction does: a watch from an older version is then Expired."""
        self._changes.clear()
        self._forgotten = self.revision

    def new_uid(self) -> str:
        """Return a uid that no object had before."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def new_name(self, prefix: str) -> str:
        """Return a generated name, as for ``generateName``."""
        return prefix + "".join(self._random.choices(_SUFFIX, k=5))

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after each change; return what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _keys(self, resource: Resource, namespace: str | None) -> Iterator[Key]:
        return (
            key
            for key in self._objects
            if key.resource == resource and (namespace is None or key.namespace == namespace)
        )

    def _record(self, kind: str, key: Key, value: Object, before: Object | None) -> None:
        if len(self._changes) == self._changes.maxlen:
            self._forgotten = self._changes[0].revision
        self._changes.append(Change(self.revision, kind, key, value, before))
        for listener in tuple(self._listeners):
            listener()
