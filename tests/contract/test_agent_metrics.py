"""What a running agent counts of its own doings, as a scraper reads it."""

from __future__ import annotations

import re

from sandbox.netns import NetworkNamespace
from sandbox.page import fetch
from sandbox.standin import StandIn
from tests.contract.beside_ui import bench


async def test_each_question_to_a_possible_ui_is_counted_by_its_verdict(network: NetworkNamespace) -> None:
    async with (
        StandIn.start(tls=True) as stand_in,
        bench(network, stand_in) as scene,
        scene.ui() as ui,
        scene.agent() as agent,
    ):
        endpoints = await agent.line(lambda line: "address" in line.fields, "HTTP endpoints")
        await agent.state("published")
        port = int(str(endpoints.fields["address"]).rpartition(":")[2])
        page = await fetch(scene.network, port, "/metrics")
        counted = re.findall(
            r'^spark_ui_agent_probes_total\{verdict="([a-z-]+)"\} (\d+)$', page.body.decode(), re.MULTILINE
        )
        assert counted == [("ours", str(len(ui.requests)))] == [("ours", "1")]
