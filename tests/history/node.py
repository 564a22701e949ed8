"""What is true on the node, whatever the agent believes: who listens where, and which ports are kept."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

from agent.model import Listener
from tests.support.make import listener

PORTS = (4040, 4041, 4042)


@dataclass
class Node:
    """Listening sockets by port: ours (`uis`) and those of other drivers on a shared network (`foreign`)."""

    chance: Random
    uis: dict[int, Listener] = field(default_factory=dict)
    foreign: dict[int, Listener] = field(default_factory=dict)
    _kept: dict[int, asyncio.TimerHandle | None] = field(default_factory=dict)
    _inodes: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def bind(self, *, ours: bool) -> Listener | None:
        """A driver's UI comes up at some free port; None where there is none."""
        free = self._free()
        if not free:
            return None
        port = self.chance.choice(free)
        bound = listener(port, next(self._inodes))
        (self.uis if ours else self.foreign)[port] = bound
        return bound

    def listeners(self) -> frozenset[Listener]:
        """The socket table, less the guard's own sockets."""
        return frozenset([*self.uis.values(), *self.foreign.values()])

    def keep(self, freed: Collection[int], settle: float) -> None:
        """As the agent's guard: takes the freed ports that it can, lets others go after `settle` seconds."""
        for port, timer in self._kept.items():
            if port in freed:
                if timer is not None:
                    timer.cancel()
                self._kept[port] = None
            elif timer is None:
                loop = asyncio.get_running_loop()
                self._kept[port] = loop.call_later(settle, self._kept.pop, port, None)
        self._kept.update(dict.fromkeys(port for port in freed if port in self._free()))

    def unkeep_all(self) -> None:
        """The agent has crashed."""
        for timer in self._kept.values():
            if timer is not None:
                timer.cancel()
        self._kept.clear()

    def _free(self) -> list[int]:
        return [port for port in PORTS if port not in {*self.uis, *self.foreign, *self._kept}]
