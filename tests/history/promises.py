"""What must hold at every moment of a history, checked where it could be broken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agent.model import Serve
from sandbox.standin import Request
from sandbox.standin.resources import Object
from tests.history.node import PORTS, Node
from tests.support.cluster import Cluster
from tests.support.life import Life
from tests.support.make import OWN

MARKS = "spark-ui-agent/"


class BrokenError(AssertionError):
    """A promise was broken; the text says which and when, and tells the story so far."""


@dataclass
class Promises:
    """Judges each request of the agent as it arrives, and each change of the store."""

    cluster: Cluster
    node: Node
    life: Callable[[], Life | None]
    protected: Callable[[], bool]  # the Service belongs to a living neighbour
    story: list[str] = field(default_factory=list)
    broken: BrokenError | None = None
    unguarded: set[int] = field(
        default_factory=set
    )  # neighbours' listeners that came while no agent kept the port
    tainted: bool = (
        False  # another writer made the Service lead here: not our doing, until we have corrected it
    )

    def say(self, what: str) -> None:
        """Adds a line to the story."""
        self.story.append(f"{asyncio.get_running_loop().time():10.4f} {what}")

    def require(self, holds: bool, what: str) -> None:
        """Raises BrokenError, and keeps it for whoever can't be raised at, unless `holds`."""
        if not holds:
            now = asyncio.get_running_loop().time()
            told = "\n".join(self.story[-60:])
            self.broken = self.broken or BrokenError(f"{what}\nat {now:.4f} s, after\n{told}")
            raise self.broken

    def arrives(self, request: Request) -> Request:
        """A request of the agent, on the point of being carried out."""
        if request.method != "GET":
            live = self.cluster.service()
            words = f"{request.method} {request.body.decode()}"
            self.say(words)
            self.require(live is None or not self.protected(), f"a living neighbour's Service: {words}")
            self._body(request.method, request.json_object(), live)
        return request

    def _body(self, method: str, body: Object, live: Object | None) -> None:
        spec: Mapping[str, object] = body.get("spec", {})
        if method == "DELETE":
            self.require(bool(body["preconditions"]["uid"]), "a DELETE without uid")
        elif method == "POST":
            self.require(spec["selector"] == self._parked, "created unparked")
        else:
            head = body["metadata"]
            self.require(bool(head["resourceVersion"]) and bool(head["uid"]), "a PATCH without a version")
            self.require(set(body) <= {"metadata", "spec"}, f"a PATCH of {set(body)}")
            self.require(set(head) <= {"resourceVersion", "uid", "annotations"}, f"a PATCH of {set(head)}")
            self.require(set(spec) <= {"selector", "ports"}, f"a PATCH of spec {set(spec)}")
            foreign = [key for key in head.get("annotations", {}) if not key.startswith(MARKS)]
            self.require(not foreign, f"foreign annotations {foreign}")
            if live is not None and live["metadata"]["resourceVersion"] == head["resourceVersion"]:
                self._lands(spec, live)

    def _lands(self, spec: Mapping[str, object], live: Object) -> None:
        """A PATCH that will not be refused: of the ports, one targetPort changes at most."""
        sent = spec.get("ports", live["spec"]["ports"])
        assert isinstance(sent, list)
        pairs = zip(live["spec"]["ports"], sent, strict=True)
        changed = [(old, new) for old, new in pairs if old != new]
        self.require(len(changed) <= 1, f"more than one port changed: {changed}")
        for old, new in changed:
            self.require({**old, "targetPort": new["targetPort"]} == new, f"more than a target: {changed}")

    def check(self) -> None:
        """Between any two changes."""
        if self.tainted:
            self.tainted = not self._corrected()
            return
        life = self.life()
        leads = self.cluster.ports() & set(PORTS)
        if life is not None and life.gone:
            self.require(not leads, f"told to be gone, but the slices lead to {leads}")
        if life is not None and life.reached and isinstance(wanted := life.world.intent.desired, Serve):
            self.require(leads <= {wanted.port}, f"told to lead to {wanted.port}, but it is {leads}")
        for port, neighbour in self.node.foreign.items():
            if port in leads:
                self.require(neighbour.inode in self.unguarded, f"the slices lead to a neighbour's {port}")

    def _corrected(self) -> bool:
        live = self.cluster.service()
        if live is None:
            return not self.cluster.ports()
        selector = live["spec"].get("selector") or {}
        leads = self.cluster.ports() & set(PORTS)
        if selector == OWN:
            return leads <= {live["spec"]["ports"][0]["targetPort"]}
        return bool(selector == self._parked and not leads)

    @property
    def _parked(self) -> dict[str, str]:
        return {f"{MARKS}parked": self.cluster.uid}
