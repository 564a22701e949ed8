"""The agent as a process beside a small UI: what the tests of its faults, rivals and commands stand on."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.agent import AgentProcess
from sandbox.apiclient import Object
from sandbox.changes import Changes, recording
from sandbox.control_plane import ControlPlane
from sandbox.fakeui import FakeUi, fake_ui
from sandbox.netns import NetworkNamespace
from sandbox.scene import Scene, on_control_plane, on_stand_in
from sandbox.services import services
from sandbox.standin import StandIn
from tests.support import measured_agent

UID = 185
SETTLED_SECONDS = 60.0


@dataclass(frozen=True)
class Bench:
    """A scene and what happens in it."""

    scene: Scene
    network: NetworkNamespace
    changes: Changes

    @contextlib.asynccontextmanager
    async def agent(
        self,
        *,
        env: Mapping[str, str] | None = None,
        mode: str = "native",
        directory: Path | None = None,
        module: str = "",
    ) -> AsyncIterator[AgentProcess]:
        """Run the agent as kubelet would: under the driver's uid, without the log hook.

        ``directory`` is that of a former agent of the Pod, ``module`` an agent with a fault.
        """
        async with self.scene.agent(
            uid=UID,
            module=module or measured_agent.module(),
            env=env,
            directory=directory,
            HOOK="off",
            MODE=mode,
        ) as agent:
            try:
                yield agent
            except Exception as error:
                error.add_note("\n".join(["the agent's log:", *(line.text for line in agent.lines)]))
                raise
        measured_agent.collect(agent.directory)

    @contextlib.asynccontextmanager
    async def ui(self, port: int = 0) -> AsyncIterator[FakeUi]:
        """Open the driver's UI; it closes with the block."""
        async with fake_ui(self.network, self.scene.application, port=port, uid=UID) as ui:
            yield ui

    async def until_led_to(self, *ports: int) -> int:
        """Wait until the Service leads to exactly these ports of the Pod; return since when."""
        wanted = {(self.scene.place.ip, port) for port in ports}
        return await self.changes.until_routed(self.scene.service, wanted, SETTLED_SECONDS)

    async def service(self) -> Object:
        """Return the one Service of the namespace."""
        found = (await self.scene.api.request("GET", services(self.scene.namespace))).ok()["items"]
        assert [one["metadata"]["name"] for one in found] == [self.scene.service]
        service: Object = found[0]
        return service


@contextlib.asynccontextmanager
async def bench(network: NetworkNamespace, api: ControlPlane | StandIn) -> AsyncIterator[Bench]:
    """Set the scene and record what happens in it."""
    setting = on_control_plane(api, network) if isinstance(api, ControlPlane) else on_stand_in(network, api)
    async with setting as scene, recording(scene.api, scene.namespace) as changes:
        yield Bench(scene, network, changes)
