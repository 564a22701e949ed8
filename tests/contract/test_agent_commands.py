"""The commands that people and hooks run beside a running agent: what they print, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from sandbox.control_plane import ControlPlane
from sandbox.netns import NetworkNamespace
from sandbox.standin import StandIn
from tests.contract.beside_ui import Bench, bench


@pytest.fixture
async def scene(network: NetworkNamespace, plane: ControlPlane | None) -> AsyncIterator[Bench]:
    if plane is not None:
        async with bench(network, plane) as made:
            yield made
        return
    async with StandIn.start(tls=True) as stand_in, bench(network, stand_in) as made:
        yield made


async def test_from_waiting_to_drained(scene: Bench) -> None:
    async with scene.agent() as agent:
        await agent.state("waiting")
        status = await agent.command("status", "--json")
        assert (status.code, json.loads(status.out)["state"]) == (0, "waiting")
        late = await agent.command("wait", "--for", "published", "--timeout", "0.3")
        assert (late.code, late.out) == (3, "")
        assert "not published within 0.3 s: waiting" in late.err

        async with scene.ui() as ui:
            published = await agent.command("wait", "--for", "published", "--timeout", "60")
            assert (published.code, published.err) == (0, "")
            assert f"http port {ui.port}" in published.out
            await scene.until_led_to(ui.port)

            told = json.loads((await agent.command("status", "--json")).out)
            wanted = {
                "state": "published",
                "reason": "",
                "port": ui.port,
                "scheme": "http",
                "application": scene.scene.application,
                "proof": "rest",
                "hook": "off",
                "service": scene.scene.service,
            }
            assert {name: told.get(name) for name in wanted} == wanted

            found = json.loads((await agent.command("discover", "--json")).out)
            [entry] = [entry for entry in found["listeners"] if entry["port"] == ui.port]
            assert (entry["taken"], entry["uid"]) == ("ours", 185)
            assert found["publish"]["port"] == ui.port
            assert {one["taken"] for one in found["listeners"]} <= {"ours", "agent", "passed-over"}
            assert ui.requests == ["/api/v1/applications"], "commands ask the agent, not the UI"

            checked = await agent.command("check")
            assert checked.code == 0, checked.out + checked.err

            drained = await agent.command("drain", "--timeout", "30")
            assert (drained.code, drained.err) == (0, "")
            assert scene.changes.routed(scene.scene.service)[-1].routes == set()
            assert json.loads((await agent.command("status", "--json")).out)["state"] == "done"
            never = await agent.command("wait", "--for", "published", "--timeout", "30")
            assert never.code == 1
            assert "will not be published any more" in never.err
            assert (await agent.command("wait", "--for", "parked", "--timeout", "30")).code == 0
        assert await agent.terminate() == 0
        alone = await agent.command("status", "--json")
        assert (alone.code, alone.out) == (1, "")
        assert str(agent.directory) in alone.err


async def test_discover_asks_by_itself_where_no_agent_runs(scene: Bench) -> None:
    async with scene.agent() as agent:
        await agent.state("waiting")
        assert await agent.terminate() == 0
        async with scene.ui() as ui:
            found = json.loads((await agent.command("discover", "--json")).out)
            assert found["publish"]["port"] == ui.port
            assert scene.changes.services == []
