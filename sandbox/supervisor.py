"""Runs one control plane from its first process to its last, inside one temporary folder."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from pathlib import Path

import aiohttp

from sandbox import audit
from sandbox.apiclient import Access, ApiClient
from sandbox.components import (
    ALL_CONTROLLERS,
    CONTROLLERS,
    Layout,
    apiserver,
    controller_manager,
    etcd,
    make_pki,
)
from sandbox.objects import create_node, wait_until
from sandbox.processes import Daemons
from sandbox.scratch import scratch_folder

READY_SECONDS = 60.0
POLL_SECONDS = 0.05


class Running:
    """A control plane that is up: its files, and a way to wait while it stays so."""

    def __init__(self, layout: Layout, daemons: Daemons) -> None:
        self.layout = layout
        self._daemons = daemons

    async def meanwhile(self, work: Coroutine[None, None, object]) -> None:
        """Wait for ``work``; raise `DaemonError` as soon as a component ends by itself."""
        await self._daemons.meanwhile(work)


@contextlib.asynccontextmanager
async def running(binaries: Path, extra_hosts: Sequence[str] = ()) -> AsyncIterator[Running]:
    """Start a control plane on a free port of the loopback; inside the block it is ready.

    Ready means: /readyz is ok, the namespace ``default`` has its ServiceAccount and ConfigMap, one Node exists.
    Raises `DaemonError` when a component ends early, TimeoutError when a step takes longer than a minute.
    """
    with scratch_folder("cluster") as folder, _reserved_port() as port:
        layout = Layout(folder)
        async with Daemons() as daemons:
            await bring_up(daemons, binaries, layout, port, extra_hosts)
            yield Running(layout, daemons)


async def bring_up(
    daemons: Daemons,
    binaries: Path,
    layout: Layout,
    port: int,
    hosts: Sequence[str] = (),
    *,
    node_ip: str = "",
) -> ApiClient:
    """Start a control plane whose files are in ``layout`` and wait until it is ready; return the administrator's client.

    ``node_ip`` is the address of the real node that will join it; without one, a Node is made through the API.
    """
    await daemons.start(etcd(binaries, layout), layout.log("etcd"))
    url = f"https://127.0.0.1:{port}"
    pki = make_pki(layout, [*hosts, *filter(None, [node_ip])])
    admin = pki.client("admin", "admin", ["system:masters"])
    pki.kubeconfig(layout.kubeconfig, url, admin)
    pki.client("kubelet-client", "kubelet-client", ["system:masters"])
    manager = pki.client("controller-manager", "system:kube-controller-manager")
    config = pki.kubeconfig(layout.folder / "controller-manager.kubeconfig", url, manager)
    # an API server that finds no etcd asks again only after a second
    await daemons.meanwhile(until(layout.etcd_socket.exists))
    audit.write_policy(layout.audit_policy)
    await daemons.start(apiserver(binaries, layout, port, node_ip), layout.log("kube-apiserver"))
    api = ApiClient(Access(url, pki.ca_file, admin.cert_file, admin.key_file))
    await daemons.meanwhile(_serving(api))
    controllers = ALL_CONTROLLERS if node_ip else CONTROLLERS
    argv = controller_manager(binaries, layout, config, controllers)
    await daemons.start(argv, layout.log("kube-controller-manager"))
    if not node_ip:
        await daemons.meanwhile(create_node(api))
    await daemons.meanwhile(_furnished(api))
    return api


@contextlib.contextmanager
def _reserved_port() -> Iterator[int]:
    # Bound but not listening: nobody else gets the port, and kube-apiserver, which shares it by SO_REUSEPORT
    # as the same user, gets every connection.
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until ``holds()``; TimeoutError after a minute."""
    async with asyncio.timeout(READY_SECONDS):
        while True:
            if holds():
                return
            await asyncio.sleep(POLL_SECONDS)


async def _serving(api: ApiClient) -> None:
    async with asyncio.timeout(READY_SECONDS):
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                if (await api.request("GET", "/readyz")).status == 200:
                    return
            await asyncio.sleep(POLL_SECONDS)


async def _furnished(api: ApiClient) -> None:
    for collection, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")):
        path = f"/api/v1/namespaces/default/{collection}"
        only = {"fieldSelector": f"metadata.name={name}"}
        await wait_until(api, path, bool, params=only, within=READY_SECONDS)
