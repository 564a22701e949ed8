"""A real cluster of one node for tests: the command ``python -m sandbox.node`` as a child, and what is asked of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from sandbox.binaries import CONTROL_PLANE, NODE, binaries
from sandbox.control_plane import ControlPlane, command_running
from sandbox.image.images import archives
from sandbox.netns import NetworkNamespace
from sandbox.node.needs import check
from sandbox.node.outside import Entrance
from sandbox.node.parts import PROXY_METRICS_PORT
from sandbox.page import Page, fetch

START_SECONDS = 300.0
KUBECTL_SECONDS = 30.0
# kube-proxy writes its rules once a second at most
PROXY_SECONDS = 5.0
POLL_SECONDS = 0.02
_SYNC = "kubeproxy_sync_proxy_rules"
_STAMPS = ("last_queued_timestamp", "last_timestamp")


class KubectlError(Exception):
    """A kubectl command failed; the message has its arguments and what it said."""


class Cluster(ControlPlane):
    """A running control plane with a real node: Pods run, Services are served by kube-proxy.

    Only in the node's own network are Pods and Services reached: see `fetch` and `network`.
    """

    @cached_property
    def network(self) -> NetworkNamespace:
        """The node's network: its address is the node's; connections made by it come from its observer."""
        return _opened(Entrance.read(self.layout.folder).network)

    @contextlib.contextmanager
    def pod_network(self, address: str) -> Iterator[NetworkNamespace]:
        """Hold the network of the Pod that has this address while the block lasts.

        LookupError where no Pod has it. Nothing connects from its observer address: a Pod has no such.
        """
        for file in (Entrance.read(self.layout.folder).files / "run/netns").iterdir():
            network = _opened(file)
            try:
                if network.run(lambda: _has(address)):
                    yield network
                    return
            finally:
                network.close()
        raise LookupError(f"no Pod on the node has the address {address}")

    async def fetch(self, host: str, port: int, path: str = "/", *, seconds: float = 10.0) -> Page:
        """GET from the node's network, as another Pod or a client of the node would; see `sandbox.page.fetch`."""
        return await fetch(self.network, port, path, host=host, seconds=seconds)

    async def first_page(
        self, host: str, port: int, path: str = "/", *, within: float = PROXY_SECONDS
    ) -> Page:
        """GET as soon as kube-proxy serves a Service, which lags behind the EndpointSlice and tells nobody.

        Raises TimeoutError when it refuses connections ``within`` seconds.
        """
        async with asyncio.timeout(within):
            while True:
                try:
                    return await self.fetch(host, port, path, seconds=within)
                except ConnectionRefusedError:
                    await asyncio.sleep(POLL_SECONDS)

    async def until_refused(self, host: str, port: int, *, within: float = PROXY_SECONDS) -> None:
        """Wait until kube-proxy refuses connections to a Service, as it does where that has no endpoints.

        Raises TimeoutError when it does not ``within`` seconds.
        """
        async with asyncio.timeout(within):
            while True:
                try:
                    (await self.network.connect(host, port)).close()
                except ConnectionRefusedError:
                    return
                await asyncio.sleep(POLL_SECONDS)

    async def proxy_synced(self, since: float, *, within: float = PROXY_SECONDS) -> float:
        """Wait until kube-proxy has written rules that it was asked for after ``since``; return when it did.

        Both are seconds of the epoch, kube-proxy's own. Raises TimeoutError.
        """
        async with asyncio.timeout(within):
            while True:
                page = await self.fetch(self.network.address, PROXY_METRICS_PORT, "/metrics")
                queued, written = (_gauge(page.body.decode(), f"{_SYNC}_{name}_seconds") for name in _STAMPS)
                if since < queued <= written:
                    return written
                await asyncio.sleep(POLL_SECONDS)

    async def run_kubectl(
        self, *arguments: str, given: str | None = None, within: float = KUBECTL_SECONDS
    ) -> str:
        """Run kubectl as the administrator, ``given`` on its stdin, and return its stdout.

        Raises `KubectlError` when it fails and TimeoutError when it takes too long.
        """
        process = await asyncio.create_subprocess_exec(
            str(self.kubectl),
            f"--kubeconfig={self.admin_kubeconfig}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(within):
                said, complaint = await process.communicate((given or "").encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {complaint.decode(errors='replace').strip()}")
        return said.decode(errors="replace")

    async def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False) -> list[str]:
        """Return the lines that a container has written, each after the node's own time stamp."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        params = {"container": container, "timestamps": "true", "previous": str(previous).lower()}
        answer = await self.admin.request("GET", path, params=params)
        answer.ok()
        return answer.text.splitlines()

    async def execute(
        self,
        namespace: str,
        pod: str,
        container: str,
        argv: Sequence[str],
        *,
        within: float = KUBECTL_SECONDS,
    ) -> str:
        """Run a command in a container and return its stdout. Raises as `run_kubectl`."""
        place = [f"--namespace={namespace}", pod, f"--container={container}"]
        return await self.run_kubectl("exec", *place, "--", *argv, within=within)


def _opened(file: Path) -> NetworkNamespace:
    return NetworkNamespace(os.open(file, os.O_RDONLY | os.O_CLOEXEC))


def _gauge(metrics: str, name: str) -> float:
    return max(
        float(line.split()[-1]) for line in metrics.splitlines() if line.startswith((f"{name} ", f"{name}{{"))
    )


def _has(address: str) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind((address, 0))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def started() -> Iterator[Cluster]:
    """Run a cluster while the block lasts, without an event loop, so that tests of any loop can share it.

    Missing binaries and images are made first. Raises `MissingError` (what the machine lacks), what `binaries` and
    `archives` raise, and RuntimeError when the node does not start.
    """
    check()
    folder = binaries([*CONTROL_PLANE, *NODE])
    archives()
    with command_running(["sandbox.node"], START_SECONDS) as (kubeconfig, pid):
        cluster = Cluster(kubeconfig, pid, folder)
        # opened while the node is there: it may be gone in the end
        network = cluster.network
        try:
            yield cluster
        finally:
            network.close()
