"""What goes wrong outside of the agent: an API server that fails, others that write to the Service."""

from __future__ import annotations

from random import Random

from sandbox.standin import Answer, Delay, Drop, Silence, When
from sandbox.standin.faults import Effect
from tests.history.promises import Promises
from tests.support.make import port
from tests.support.wire import Wire

FAULTS: tuple[Effect, ...] = (
    Answer(409),
    Answer(429, retry_after=1),
    Answer(500),
    Answer(503),
    Answer(403),
    Answer(401),
    Drop(),
    Silence(),
    Delay(0.5),
    Delay(8.0),
)
TRIPS = (0.001, 0.002, 0.01, 0.05)
SETTLES = (0.002, 0.01, 0.05, 0.3, 4.0)


class Weather:
    """Faults of the API server and the writes of others, by chance."""

    def __init__(self, chance: Random, wire: Wire, promises: Promises) -> None:
        self._chance = chance
        self._wire = wire
        self._cluster = wire.cluster
        self._promises = promises
        wire.trip = lambda: chance.choice(TRIPS)

    async def worsens(self) -> None:
        """One more fault, for some requests to come."""
        effect = self._chance.choice(FAULTS)
        when = self._chance.choice((When.BEFORE, When.AFTER))
        # Without the right to list slices "gone" is a guess: a slower controller would prove it wrong.
        verbs = ("get", "create", "patch", "delete", *(() if effect == Answer(403) else ("list", "*")))
        verb = self._chance.choice(verbs)
        count = self._chance.choice((1, 1, 2, 5, 40))
        self._promises.say(f"fault: {effect} {when.name} {verb}, {count} times")
        self._wire.faults.plant(effect, verb=verb, when=when, times=count)
        self._wire.settle = self._chance.choice(SETTLES)

    async def clears(self) -> None:
        """No more faults."""
        self._wire.faults.clear()

    async def other_writer(self) -> None:
        """A user or an operator writes to the Service, which is not a living neighbour's."""
        live = self._cluster.service()
        if live is None or self._promises.protected():
            return
        kind = self._chance.choice(("labels", "ports", "target", "key", "no selector", "operator", "delete"))
        self._promises.say(f"another writer: {kind}")
        number = str(self._chance.randrange(100))
        selector, ports = live["spec"].get("selector") or {}, live["spec"]["ports"]
        match kind:
            case "labels":
                self._cluster.patch({"metadata": {"labels": {"n": number}, "annotations": {"n": number}}})
            case "ports":
                more = port(1000 + int(number), name="more", number=9999)
                self._cluster.patch({"spec": {"ports": [ports[0], more]}})
            case "target":
                self._cluster.patch({"spec": {"ports": [{**ports[0], "targetPort": 5005}, *ports[1:]]}})
            case "key":
                self._cluster.patch({"spec": {"selector": {"more": "1"}}})
            case "no selector":
                self._cluster.patch({"spec": {"selector": None}})
            case "operator":
                self._promises.tainted = True
                self._cluster.patch({"spec": {"selector": {**dict.fromkeys(selector), "uid-tag": "drv-1"}}})
            case "delete":
                self._cluster.delete()
