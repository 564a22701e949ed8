"""A real control plane for tests: the command of `sandbox.cluster` as a child, and what is needed to talk to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import selectors
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from sandbox import audit
from sandbox.apiclient import Access, ApiClient
from sandbox.binaries import binaries
from sandbox.components import Layout
from sandbox.pki import Pki

START_SECONDS = 120.0
END_SECONDS = 30.0


class ControlPlane:
    """A running etcd, kube-apiserver and kube-controller-manager on the loopback, with one Node and no kubelet.

    ``pid`` is the process that runs them; when it dies, so do they, and when this process dies, it ends.
    """

    def __init__(self, kubeconfig: Path, pid: int, binaries: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        self.pid = pid
        self.layout = Layout(kubeconfig.parent)
        self.admin_kubeconfig = kubeconfig
        self.kubectl = binaries / "kubectl"
        self.url: str = config["clusters"][0]["cluster"]["server"]
        address = urlsplit(self.url)
        self.host, self.port = address.hostname or "", address.port or 443
        self.ca_file = self.layout.pki / "ca.crt"

    @cached_property
    def admin(self) -> ApiClient:
        """A client with every right, which opens a connection per call and so suits any event loop."""
        return self.client()

    def client(self, token: str | None = None) -> ApiClient:
        """Return a client that asks with ``token``, or as the administrator without one."""
        if token is not None:
            return ApiClient(Access(self.url, self.ca_file, token=token))
        admin = self.layout.admin
        return ApiClient(Access(self.url, self.ca_file, admin.cert_file, admin.key_file))

    @cached_property
    def pki(self) -> Pki:
        """The cluster's certificate authority, to issue more client and server certificates."""
        return Pki.load(self.layout.pki)

    def log(self, component: str) -> str:
        """Return what ``etcd``, ``kube-apiserver`` or ``kube-controller-manager`` has logged so far."""
        return self.layout.log(component).read_text(errors="replace")

    async def audit(self, user: str) -> list[audit.Call]:
        """Return every call so far of the ServiceAccount whose user name this is; see `sandbox.audit.calls`."""
        return await audit.calls(self.layout.audit_log, user)

    @classmethod
    @contextlib.asynccontextmanager
    async def start(cls, hosts: Sequence[str] = ()) -> AsyncIterator[ControlPlane]:
        """Run a control plane while the block lasts; see `started`."""
        with contextlib.ExitStack() as stack:
            entering = asyncio.ensure_future(asyncio.to_thread(stack.enter_context, started(hosts)))
            try:
                yield await asyncio.shield(entering)
            finally:
                # also when this task is cancelled meanwhile: what is being started must be ended
                await asyncio.wait([entering])
                await asyncio.to_thread(stack.close)


@contextlib.contextmanager
def started(hosts: Sequence[str] = ()) -> Iterator[ControlPlane]:
    """Run a control plane while the block lasts, without an event loop, so that tests of any loop can share it.

    ``hosts`` are further names and addresses for the API server's certificate. Missing binaries are built first,
    which raises what `binaries` raises; RuntimeError when the control plane does not start.
    """
    folder = binaries()
    arguments = ["sandbox.cluster", *(f"--host={host}" for host in hosts)]
    with command_running(arguments, START_SECONDS) as (kubeconfig, pid):
        yield ControlPlane(kubeconfig, pid, folder)


@contextlib.contextmanager
def command_running(arguments: Sequence[str], within: float) -> Iterator[tuple[Path, int]]:
    """Run a module of the sandbox that prints ``KUBECONFIG=...`` when it is ready; yield that path and its pid.

    ``arguments`` begin with the module's name. RuntimeError when it is not ready ``within`` seconds. It is ended when
    the block is left, and ends by itself when this process dies.
    """
    command = [sys.executable, "-m", *arguments, "--until-stdin-closes"]
    root = Path(__file__).parent.parent
    # a process group of its own: after Ctrl-C the tests still tidy up through the API before it ends
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, process_group=0
    ) as process:
        try:
            yield _kubeconfig(process, arguments[0], within), process.pid
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _kubeconfig(process: subprocess.Popen[bytes], name: str, within: float) -> Path:
    if process.stdout is None:
        raise ValueError("the process has no pipe for its output")
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        line = process.stdout.readline() if selector.select(within) else b""
    word, _, value = line.decode().strip().partition("=")
    if word != "KUBECONFIG":
        raise RuntimeError(f"{name} was not ready in {within:.0f} s; its messages are on stderr")
    return Path(value)
