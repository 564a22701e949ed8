"""``python -m sandbox.demo``: the main job on a real Spark driver, told step by step.

A Spark driver binds its UI to a port that nobody chose; the agent is told by Spark's own log, publishes a Service, and
parks it when the context stops, before the UI closes. The API server is the stand-in by default, or a real control plane.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Sequence

from sandbox.agent import AgentError
from sandbox.apiclient import ApiClient
from sandbox.changes import recording
from sandbox.control_plane import ControlPlane
from sandbox.netns import NetworkNamespace
from sandbox.page import Page, fetch
from sandbox.scene import Scene, hooked, on_control_plane, on_stand_in
from sandbox.services import endpoint_slices, of_service, routes, services, wait_for_routes
from sandbox.spark.driver import DriverError, SparkDriver
from sandbox.spark.install import spark_home
from sandbox.spark.java import JavaError

VERSION = "4.1.4"

ON_A_CLUSTER = """
On a cluster of yours:
  make image, and push it where your nodes pull from; then
  kubectl apply -k deploy          (in the namespace of your drivers: ServiceAccount "spark" and its rights)
  spark-submit --master k8s://... --deploy-mode cluster \\
    --conf spark.kubernetes.driver.podTemplateFile=deploy/native/pod-template.yaml \\
    --conf spark.kubernetes.driver.podTemplateContainerName=spark-kubernetes-driver ...
  kubectl port-forward service/<driver Pod without -driver>-ui 4040
"""


class Story:
    """Prints what happens, with the time since the beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        """One line."""
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", flush=True)


@contextlib.asynccontextmanager
async def _scene(cluster: str, story: Story) -> AsyncIterator[Scene]:
    async with contextlib.AsyncExitStack() as stack:
        # Root gets a network of its own, as a Pod has one; without root the driver shares this machine's.
        network = stack.enter_context(NetworkNamespace.create()) if os.geteuid() == 0 else None
        if cluster == "real":
            story.tell("starting etcd, kube-apiserver and kube-controller-manager")
            plane = await stack.enter_async_context(ControlPlane.start())
            yield await stack.enter_async_context(on_control_plane(plane, network))
        else:
            story.tell("starting the stand-in API server")
            yield await stack.enter_async_context(on_stand_in(network))


async def _routes(scene: Scene) -> set[tuple[str, int]]:
    path, params = endpoint_slices(scene.namespace), of_service(scene.service)
    return routes((await scene.api.request("GET", path, params=params)).ok()["items"])


async def _through_service(scene: Scene) -> Page:
    """What a client of the Service is given: one of its endpoints is asked, as kube-proxy would choose it."""
    (address, port), *_ = await _routes(scene)
    host = address if scene.network is not None else "127.0.0.1"
    return await fetch(scene.network, port, "/jobs/", host=host)


async def _selector(api: ApiClient, scene: Scene) -> str:
    service = (await api.request("GET", services(scene.namespace, scene.service))).ok()
    return ",".join(f"{key}={value}" for key, value in service["spec"]["selector"].items())


async def play(cluster: str, story: Story) -> None:
    """The whole story. Raises when a step is not as told: AgentError, DriverError, TimeoutError, AssertionError."""
    await asyncio.to_thread(spark_home, VERSION)
    async with _scene(cluster, story) as scene:
        story.tell(f"driver Pod {scene.place.pod} stands, application {scene.application}; no Service yet")
        async with contextlib.AsyncExitStack() as stack:
            seen = await stack.enter_async_context(recording(scene.api, scene.namespace))
            shared = scene.folder / "shared"
            agent = await stack.enter_async_context(scene.agent(directory=shared, HOOK="on"))
            await agent.state("waiting")
            story.tell("the agent runs, has written its log hook for the driver, and looks for the UI")
            story.tell(f"starting a Spark {VERSION} driver with spark.ui.port=0 (10 to 30 s) ...")
            driver = await stack.enter_async_context(
                SparkDriver.start(
                    version=VERSION,
                    namespace=scene.network,
                    master=scene.master(VERSION),
                    app_id=scene.application,
                    conf={"spark.ui.port": "0", "spark.app.name": "demo"},
                    env=hooked(shared),
                )
            )
            port = await driver.ui_bound()
            story.tell(f"Spark has bound its UI to port {port}, which nobody could know")
            published = await agent.state("published")
            story.tell(
                f"the agent has proven port {published.fields['port']} ({published.fields['proof']}) and published Service "
                f"{published.fields['service']}"
            )
            await wait_for_routes(scene.api, scene.namespace, scene.service, {(scene.place.ip, port)})
            page = await _through_service(scene)
            title = re.search(rb"<title>\s*(.*?)\s*</title>", page.body, re.DOTALL)
            if page.status != 200 or title is None or b"demo" not in title[1]:
                raise AssertionError(f"not this driver's page: {page.status} {page.body[:200]!r}")
            story.tell(f'GET /jobs/ through the Service\'s endpoint: {page.status}, "{title[1].decode()}"')
            result = await driver.result()
            story.tell(f"the job's result: {result}")
            story.tell("stopping the SparkContext; the JVM stays")
            stopping = asyncio.create_task(driver.stop_context())
            closed = await driver.ui_closed()
            parked = await seen.until_routed(scene.service, set())
            await stopping
            if parked >= closed:
                raise AssertionError(
                    f"the UI's port was closed {(parked - closed) / 1e6:.0f} ms before the endpoints were gone"
                )
            story.tell(
                f"the Service is parked, and {(closed - parked) / 1e6:.0f} ms later Spark has closed the UI's port"
            )
            story.tell(f"its selector is now {await _selector(scene.api, scene)}, its endpoints: none")
            try:
                await fetch(scene.network, port)
            except OSError as error:
                story.tell(f"a request to the old port: {error.strerror or error}")
            else:
                raise AssertionError(f"port {port} still answers")
            code = await agent.terminate()
            story.tell(f"SIGTERM: the agent has ended with exit code {code}")
    print(ON_A_CLUSTER)


def main(argv: Sequence[str] | None = None) -> int:
    """Play the demo; 1 with the reason when a step fails."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.demo", description=__doc__.partition("\n")[0])
    parser.add_argument("--cluster", choices=("stand-in", "real"), default="stand-in")
    options = parser.parse_args(argv)
    try:
        asyncio.run(play(options.cluster, Story()))
    except (AgentError, AssertionError, DriverError, JavaError, OSError, TimeoutError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
