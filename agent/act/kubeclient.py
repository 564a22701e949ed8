"""kubernetes_asyncio, which is imported here alone, and a client of it that follows and trusts the cluster only.

Facts about it that shape this file (36.1): importing any part of it loads 768 models (33 MiB more), so empty parent
packages are registered first; it follows proxies of the environment and redirects.
"""

from __future__ import annotations

import importlib
import importlib.util
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Protocol

import aiohttp

from ..model import UnreachableError

_PARENTS = ("kubernetes_asyncio", "kubernetes_asyncio.client", "kubernetes_asyncio.client.models")


class Client(Protocol):
    """What is used of kubernetes_asyncio.client.ApiClient."""

    rest_client: ModuleType
    user_agent: str

    async def call_api(
        self, resource_path: str, method: str, **options: object
    ) -> aiohttp.ClientResponse: ...
    async def close(self) -> None: ...


class _Session:
    """The client's session without redirects: what answers elsewhere is not the API server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(self, *, method: str, url: str, **options: object) -> aiohttp.ClientResponse:
        headers = options.get("headers")
        timeout = options.get("timeout")
        return await self._session.request(
            method,
            url,
            allow_redirects=False,
            headers={str(k): str(v) for k, v in headers.items()} if isinstance(headers, Mapping) else None,
            timeout=timeout if isinstance(timeout, aiohttp.ClientTimeout) else None,
            data=options.get("data"),
        )

    async def close(self) -> None:
        await self._session.close()


def load_client() -> tuple[ModuleType, ModuleType]:
    """kubernetes_asyncio's `client.configuration` and `client.api_client`, without the models it does not need.

    Falls back to the whole package where its layout is another one.
    """
    if _PARENTS[0] not in sys.modules:
        try:
            for name in _PARENTS:
                spec = importlib.util.find_spec(name)
                if spec is None:
                    raise ImportError(name)
                sys.modules[name] = importlib.util.module_from_spec(spec)
                parent, _, child = name.rpartition(".")
                if parent:
                    setattr(sys.modules[parent], child, sys.modules[name])
            return _modules()
        except (ImportError, AttributeError):
            for name in [name for name in sys.modules if name.split(".")[0] == _PARENTS[0]]:
                del sys.modules[name]
    return _modules()


def _modules() -> tuple[ModuleType, ModuleType]:
    return (
        importlib.import_module("kubernetes_asyncio.client.configuration"),
        importlib.import_module("kubernetes_asyncio.client.api_client"),
    )


async def connect(url: str, ca_file: Path) -> Client:
    """A client of the API server at `url`, which `ca_file` vouches for. Nothing is sent yet.

    Raises:
        UnreachableError: the CA can't be read.
    """
    configuration, api_client = load_client()
    config = configuration.Configuration(host=url)
    # Python 3.13 refuses cluster CAs without key identifiers; chain and host name are checked all the same.
    config.disable_strict_ssl_verification = True
    if url.startswith("https"):
        try:
            ssl.create_default_context(cafile=str(ca_file))
        except (OSError, ssl.SSLError) as error:
            raise UnreachableError(0, "NoCA", f"{ca_file} can't be read ({type(error).__name__})") from error
        config.ssl_ca_cert = str(ca_file)
    client: Client = api_client.ApiClient(configuration=config)
    await _own_session(client)
    return client


async def _own_session(client: Client) -> None:
    """Swaps the client's session, which follows proxies and .netrc of the environment, for one that does not."""
    theirs: aiohttp.ClientSession = client.rest_client.pool_manager
    connector = theirs.connector
    theirs.detach()
    ours = aiohttp.ClientSession(connector=connector, trust_env=False, auto_decompress=True)
    vars(client.rest_client)["pool_manager"] = _Session(ours)
