"""The EndpointSlices of the Service: does it lead here, and has it ceased to. What "gone" is seen by."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Protocol

from .. import times
from ..decide.tree import Json, at, items, text
from ..model import ForbiddenError
from ..settings import Settings


class Lists(Protocol):
    """What is needed of `agent.act.kube.Kube`."""

    async def list_slices(self, service: str) -> list[Json]: ...


class Slices:
    """Asks for them anew each time, but for a Service that was seen to lead nowhere and was not written since."""

    def __init__(self, api: Lists, settings: Settings) -> None:
        self._api = api
        self._identity = settings.identity
        self._clear = ""  # resourceVersion of the Service at which they were seen to be empty

    def forget(self) -> None:
        """A write is sent: whatever was seen may be otherwise now."""
        self._clear = ""

    async def emptied(
        self,
        name: str,
        service: Json | None,
        port: int = 0,
        others: Collection[str] = (),
        *,
        reads: int = times.SLICE_READS,
    ) -> bool:
        """Waits until no endpoint of the Service `name` leads here; given `port` and `others`, as `lead_here` counts.

        False when one still does after so many `reads`. Without the right to read them it is the write and a moment.

        Raises:
            ApiError: any other failed read.
        """
        version = text(service, "metadata", "resourceVersion")
        if not port and version and version == self._clear:
            return True
        pause = times.SLICE_FIRST
        for left in reversed(range(reads)):
            try:
                if not await self.lead_here(name, port, others):
                    await asyncio.sleep(times.SLICE_LAG)
                    self._clear = "" if port else version
                    return True
            except ForbiddenError:
                await asyncio.sleep(times.BLIND_GONE)
                return True
            if left:
                await asyncio.sleep(pause)
            pause = min(pause * 2, times.SLICE_MAX)
        return False

    async def lead_here(self, name: str, port: int = 0, others: Collection[str] = ()) -> bool:
        """True when an endpoint of the Service `name` leads to this Pod.

        With a `port`, only at another one than that, and under none of the names `others`, which are ports of other
        entries of the Service.

        Raises:
            ApiError: of the request.
        """
        for piece in await self._api.list_slices(name):
            elsewhere = [
                one
                for one in items(piece, "ports")
                if one.get("port") != port and text(one, "name") not in others
            ]
            if port and not elsewhere:
                continue
            for endpoint in items(piece, "endpoints"):
                target = text(endpoint, "targetRef", "uid")
                addresses = at(endpoint, "addresses")
                # A slice mirrored from stale Endpoints may lack the reference to the Pod.
                ours = isinstance(addresses, list) and not self._identity.ips.isdisjoint(addresses)
                if target == self._identity.uid or (not target and ours):
                    return True
        return False
