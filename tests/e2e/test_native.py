"""The shipped pod template and nothing else: what a user of spark-submit gets."""

from __future__ import annotations

from pathlib import Path

from sandbox.changes import recording
from sandbox.node.cluster import Cluster
from sandbox.node.submit import Job, submitted
from sandbox.node.templates import template_file
from sandbox.services import services
from sandbox.spark.portwatch import PortWatch, watch_ports
from sandbox.spark.trace import Listener


def closed(ports: dict[str, Listener], port: int) -> int | None:
    """When the listener of ``port`` was closed."""
    return next((one.closed_at for one in ports.values() if one.socket.port == port and one.closed_at), None)


async def closing(ports: PortWatch, port: int) -> int:
    return await ports.until(lambda seen: closed(seen, port), 30, f"the close of port {port}")


async def test_the_page_is_served_through_the_service_until_just_before_the_ui_closes(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    template = await template_file(cluster, "native", tmp_path)
    job = Job("native", ["context", "result", "await:stop", "stop", "await:end"], template)
    async with recording(cluster.admin, namespace) as seen, submitted(cluster, namespace, job) as driver:
        pod = await driver.until("Running")
        address = pod["status"]["podIP"]
        await seen.until_routed("native-ui", {(address, 4040)}, within=90)
        service = (await cluster.admin.request("GET", services(namespace, "native-ui"))).ok()
        host = service["spec"]["clusterIP"]
        assert (await cluster.first_page(host, 4040)).status in (200, 302)

        assert await driver.until_step("result") == "499500"
        page = await cluster.fetch(host, 4040, "/jobs/")
        assert page.status == 200
        assert b"native" in page.body

        with cluster.pod_network(address) as network:
            async with watch_ports(network) as ports:
                await driver.steer("stop")
                gone = await closing(ports, 4040)
        parked = await seen.until_routed("native-ui", set())
        assert parked < gone
        await cluster.until_refused(host, 4040)

        await driver.steer("end")
        assert await driver.finished() == 0
        await driver.until("Succeeded")
        await seen.until(lambda changes: changes.services[-1].type == "DELETED")
