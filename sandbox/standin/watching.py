"""Watches: the changes of a resource as the events that a client sees."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from sandbox.standin.ledger import ADDED, DELETED, MODIFIED, Change, Ledger
from sandbox.standin.resources import Object, Resource
from sandbox.standin.selection import Selection
from sandbox.standin.status import StatusError

ERROR = "ERROR"


class Watch:
    """One watch. `take` returns the events since it was last asked.

    Without a version to start ``after`` the first events are one ADDED per object that is there. An object that
    comes to match the selection is ADDED, one that ceases to is DELETED. A version that is no longer kept gives
    one ERROR with a 410 Status, and ``over`` is then true.
    """

    def __init__(
        self,
        ledger: Ledger,
        resource: Resource,
        namespace: str | None,
        selection: Selection,
        after: int | None,
    ) -> None:
        self.over = False
        self._ledger = ledger
        self._resource = resource
        self._namespace = namespace
        self._selection = selection
        self._after = after

    def take(self) -> list[Object]:
        """Return the events (``type`` and ``object``) since the last call."""
        if self._after is None:
            self._after = self._ledger.revision
            found = self._ledger.find(self._resource, self._namespace)
            return [_event(ADDED, item) for item in found if self._selection.matches(item)]
        try:
            changes = self._ledger.since(self._after)
        except StatusError as error:
            self.over = True
            return [_event(ERROR, error.body())]
        self._after = max(self._after, self._ledger.revision)
        return [event for change in changes for event in self._events(change)]

    def _events(self, change: Change) -> Iterator[Object]:
        if change.key.resource != self._resource:
            return
        if self._namespace is not None and change.key.namespace != self._namespace:
            return
        was = change.before is not None and self._selection.matches(change.before)
        matches = change.type != DELETED and self._selection.matches(change.object)
        if matches:
            yield _event(MODIFIED if was else ADDED, change.object)
        elif was and change.before is not None:
            # the state that matched, under the version of the change that ended that
            last = copy.deepcopy(change.before)
            last["metadata"]["resourceVersion"] = change.object["metadata"]["resourceVersion"]
            yield _event(DELETED, last)


def _event(kind: str, value: Object) -> Object:
    return {"type": kind, "object": value}
