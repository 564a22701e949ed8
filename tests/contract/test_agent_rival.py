"""Somebody else writes to the Service twenty times a second: the agent converges, and takes nothing from him."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from sandbox.apiclient import STRATEGIC_MERGE_PATCH, Object
from sandbox.changes import Change
from sandbox.control_plane import ControlPlane
from sandbox.netns import NetworkNamespace
from sandbox.services import create_service, services
from tests.contract.beside_ui import Bench, bench

PERIOD = 0.05
CYCLES = 5
METRICS = 8080
FIRST_TARGET = 10000
TURN = "team.example/turn"
FOREIGN: Object = {
    "labels": {"team.example/owner": "platform"},
    "annotations": {"team.example/dashboard": "spark", "team.example/keep": "yes"},
}


class Rival:
    """Writes a label, an annotation and another port's targetPort, each time with the next number."""

    def __init__(self, scene: Bench) -> None:
        self.turns = 0
        self._scene = scene
        self._passed = asyncio.Event()

    async def write_on(self) -> None:
        """Write until cancelled; a strategic merge-patch, as kubectl sends it, changes one entry of the ports."""
        path = services(self._scene.scene.namespace, self._scene.scene.service)
        while True:
            turn = self.turns + 1
            marks = {TURN: str(turn)}
            body = {
                "metadata": {"labels": marks, "annotations": marks},
                "spec": {"ports": [{"port": METRICS, "targetPort": FIRST_TARGET + turn}]},
            }
            answer = await self._scene.scene.api.request(
                "PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH
            )
            answer.ok()
            self.turns = turn
            self._passed.set()
            await asyncio.sleep(PERIOD)

    async def another(self, turns: int = 3) -> None:
        """Wait for some more of his writes."""
        async with asyncio.timeout(10):
            for _ in range(turns):
                self._passed.clear()
                await self._passed.wait()


@contextlib.asynccontextmanager
async def _rival(scene: Bench) -> AsyncIterator[Rival]:
    rival = Rival(scene)
    writing = asyncio.create_task(rival.write_on())
    try:
        yield rival
    finally:
        writing.cancel()
        outcome = await asyncio.gather(writing, return_exceptions=True)
    assert isinstance(outcome[0], asyncio.CancelledError), outcome


def _turns(change: Change) -> set[int]:
    """The number of the rival's last write, from each of the three places where he put it."""
    meta, ports = change.object["metadata"], change.object["spec"]["ports"]
    [metrics] = [port for port in ports if port["port"] == METRICS]
    written = meta["labels"].get(TURN, "0"), meta["annotations"].get(TURN, "0")
    return {int(written[0]), int(written[1]), metrics["targetPort"] - FIRST_TARGET}


async def test_the_agent_converges_and_loses_nothing_of_a_busy_rivals(
    control_plane: ControlPlane, network: NetworkNamespace
) -> None:
    async with bench(network, control_plane) as scene:
        made = await create_service(
            scene.scene.api,
            scene.scene.namespace,
            scene.scene.service,
            selector={"spark-app-selector": scene.scene.application, "spark-role": "driver"},
            metadata=FOREIGN,
            spec={
                "type": "NodePort",
                "externalTrafficPolicy": "Local",
                "ports": [
                    {"name": "spark-ui", "port": 4040, "appProtocol": "http"},
                    {
                        "name": "metrics",
                        "port": METRICS,
                        "targetPort": FIRST_TARGET,
                        "appProtocol": "example.com/prom",
                    },
                ],
            },
        )
        async with _rival(scene) as rival, scene.agent() as agent:
            for _ in range(CYCLES):
                async with scene.ui() as ui:
                    await _led_to(scene, ui.port)
                    await rival.another()
                await _led_to(scene)
                await rival.another()
            assert await agent.terminate() == 0
        assert rival.turns > 2 * CYCLES

        history = scene.changes.of_service(scene.scene.service)
        turns = [_turns(change) for change in history]
        assert all(len(told) == 1 for told in turns), "no write of his was taken apart"
        order = [next(iter(told)) for told in turns]
        assert order == sorted(order), "no write of his was undone"
        assert order[-1] == rival.turns
        for change in history:
            _keeps_what_was_made(change.object, made)
        calls = await control_plane.audit(scene.scene.user)
        # At SIGTERM the agent may hang up on the read of its Pod; of what it writes, every answer is awaited.
        others = [call for call in calls if call.code not in (200, 201, 409)]
        assert [call for call in others if not (call.verb == "get" and call.hung_up)] == [], others
        assert len(others) <= 1, others


async def _led_to(scene: Bench, *ports: int) -> None:
    """Wait until the entry of the UI leads to exactly these ports; that of the metrics leads where its owner wants."""

    def holds(_: object) -> bool:
        leads = {port for _, port in scene.changes.leads_to(scene.scene.service)}
        return {port for port in leads if not FIRST_TARGET <= port < FIRST_TARGET + 10000} == set(ports)

    await scene.changes.until(holds, 30.0)


def _keeps_what_was_made(now: Object, made: Object) -> None:
    for kind in ("labels", "annotations"):
        assert now["metadata"][kind].items() >= made["metadata"][kind].items()
    for field in ("type", "clusterIP", "externalTrafficPolicy"):
        assert now["spec"][field] == made["spec"][field]
    for before, after in zip(made["spec"]["ports"], now["spec"]["ports"], strict=True):
        kept = ("name", "port", "protocol", "nodePort", "appProtocol")
        assert [after.get(name) for name in kept] == [before.get(name) for name in kept]
