"""A stand-in API server, ready to use: started in-process on loopback, with its CA, its tokens and its faults."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from sandbox.apiclient import Access as ClientAccess
from sandbox.apiclient import ApiClient
from sandbox.pki import Pki
from sandbox.standin.access import ADMIN, ANONYMOUS, Access
from sandbox.standin.api import Api
from sandbox.standin.faults import Faults
from sandbox.standin.recording import Recorded, Recording
from sandbox.standin.resources import (
    RBAC_GROUP,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Object,
)
from sandbox.standin.server import Server
from sandbox.standin.store import Store

LOOPBACK = "127.0.0.1"
SETTLE_SECONDS = 0.010  # a real cluster takes 8 to 15 ms from a write to the slice that follows it
_NAMES = ("localhost", LOOPBACK, "kubernetes", "kubernetes.default", "kubernetes.default.svc")


class StandIn:
    """One running stand-in.

    ``url`` is where it listens; ``ca_file`` the CA that a client should trust (None for plain HTTP); ``token_file``
    holds a token with all rights; ``admin`` is a client that uses it. ``store`` may be read and written directly.
    """

    def __init__(self, server: Server, folder: Path, url: str, ca_file: Path | None) -> None:
        self.url = url
        self.ca_file = ca_file
        self.token_file = folder / "token"
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(server.api.access.admin_token)
        self.admin = ApiClient(ClientAccess(url, ca_file, token=server.api.access.admin_token))
        self._server = server

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls,
        *,
        tls: bool = False,
        trusted: bool = True,
        open_to_all: bool = False,
        settle_delay: float | None = SETTLE_SECONDS,
        host: str = LOOPBACK,
        port: int = 0,
    ) -> AsyncIterator[StandIn]:
        """Start a stand-in and stop it when the block is left; OSError when the port is taken.

        ``tls`` serves HTTPS; with ``trusted`` false its certificate comes from another CA than ``ca_file``.
        ``open_to_all`` gives all rights to whoever comes without a token. ``settle_delay`` is how long the
        controllers wait after a write, in seconds; None: for `settle`.
        """
        store = Store(now=lambda: datetime.now(UTC))
        api = Api(store, Access(store.ledger, everyone=ADMIN if open_to_all else ANONYMOUS))
        server = Server(api, settle_delay=settle_delay)
        with tempfile.TemporaryDirectory(prefix="standin-") as name:
            folder = Path(name)
            ca_file, context = _tls(folder, host, trusted=trusted) if tls else (None, None)
            try:
                bound = await server.open(host, port, context)
                scheme = "https" if tls else "http"
                yield cls(server, folder, f"{scheme}://{host}:{bound}", ca_file)
            finally:
                await server.close()

    @property
    def store(self) -> Store:
        """The objects, and the rules by which they change."""
        return self._server.api.store

    @property
    def api(self) -> Api:
        """The API without its socket."""
        return self._server.api

    @property
    def faults(self) -> Faults:
        """What is to go wrong."""
        return self._server.faults

    @property
    def recording(self) -> Recording:
        """Every request so far, and a way to wait for one."""
        return self._server.recording

    @property
    def requests(self) -> list[Recorded]:
        """Every request so far, in order of arrival."""
        return self._server.recording.requests

    @property
    def settle_delay(self) -> float | None:
        """How long the controllers wait after a write, in seconds; None: for `settle`."""
        return self._server.settle_delay

    @settle_delay.setter
    def settle_delay(self, seconds: float | None) -> None:
        self._server.settle_delay = seconds

    def settle(self) -> None:
        """Let the controllers do now what they have to do."""
        self.store.settle()

    def grant(self, namespace: str, account: str, rules: Sequence[Object]) -> str:
        """Make a ServiceAccount with the rights that ``rules`` (as in a Role) give it; return a token of its."""
        place: Object = {"metadata": {"name": account}}
        subject = {"kind": SERVICE_ACCOUNTS.kind, "name": account, "namespace": namespace}
        role = {"apiGroup": RBAC_GROUP, "kind": ROLES.kind, "name": account}
        self.store.create(SERVICE_ACCOUNTS, namespace, place)
        self.store.create(ROLES, namespace, place | {"rules": list(rules)})
        self.store.create(ROLE_BINDINGS, namespace, place | {"roleRef": role, "subjects": [subject]})
        return self.api.access.issue(namespace, account)


def _tls(folder: Path, host: str, *, trusted: bool) -> tuple[Path, ssl.SSLContext]:
    authorities = {}
    for name in ("ca", "stranger"):
        place = folder / name
        place.mkdir()
        authorities[name] = Pki.create(place, f"standin-{name}")
    issuer = authorities["ca" if trusted else "stranger"]
    certificate = issuer.server("apiserver", sorted({*_NAMES, host}))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate.cert_file, certificate.key_file)
    return authorities["ca"].ca_file, context
