"""The Kubernetes API: calls with a deadline each.

Facts about the client that shape this file (kubernetes_asyncio 36.1): a dict body goes out as strategic-merge unless
the content type is given; it has no time-outs, and reads the CA once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import quote

import aiohttp

from .. import times
from ..decide.tree import Json, at, items
from ..model import (
    UnauthorizedError,
    UnreachableError,
)
from ..settings import Settings
from .errors import api_error
from .kubeclient import Client, connect

MANAGER = "spark-ui-agent"
TOKEN_AGE = 60.0  # kubelet renews a projected token long before it expires
BODY = 8 * 2**20  # an API server's largest object is 1.5 MiB; a list of slices of one Service is far below
_PARENTS = ("kubernetes_asyncio", "kubernetes_asyncio.client", "kubernetes_asyncio.client.models")

Count = Callable[[str, str], None]
Hide = Callable[[str], None]


def _ignore(*_: str) -> None:
    """Where nobody counts or nothing has to be hidden."""


class Kube:
    """Calls with a deadline each, JSON objects in and out, errors as `agent.model.ApiError`'s kinds."""

    def __init__(self, settings: Settings, count: Count = _ignore, hide: Hide = _ignore) -> None:
        self._settings = settings
        self._count = count
        self._hide = hide
        self._api: Client | None = None
        self._token = ""
        self._token_read = float("-inf")
        self._namespace = quote(settings.identity.namespace)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, count: Count = _ignore, hide: Hide = _ignore
    ) -> AsyncIterator[Kube]:
        """A client that is closed at the end. Nothing is read or connected before the first call.

        `count` takes each call's verb and status ("unreachable" without an answer), `hide` each token that is read.
        """
        kube = cls(settings, count, hide)
        try:
            yield kube
        finally:
            await kube._close()

    # --- what the agent asks -------------------------------------------------------------------------

    async def get_pod(self, name: str) -> Json:
        """The Pod `name`."""
        return await self._call("GET", self._core("pods", name))

    async def get_service(self, name: str) -> Json:
        """The Service `name`."""
        return await self._call("GET", self._core("services", name))

    async def list_services(self, labels: Mapping[str, str]) -> list[Json]:
        """The Services that have all `labels`."""
        chosen = ",".join(f"{key}={value}" for key, value in labels.items())
        return [*items(await self._call("GET", self._core("services"), {"labelSelector": chosen}), "items")]

    async def create_service(self, body: Json, *, dry_run: bool = False) -> Json:
        """POST a Service."""
        return await self._call("POST", self._core("services"), _writing(dry_run), body)

    async def patch_service(self, name: str, body: Json, *, dry_run: bool = False) -> Json:
        """JSON merge-patch the Service `name`."""
        return await self._call("PATCH", self._core("services", name), _writing(dry_run), body)

    async def delete_service(self, name: str, uid: str) -> None:
        """DELETE the Service `name`, if it still has `uid`."""
        await self._call("DELETE", self._core("services", name), None, {"preconditions": {"uid": uid}})

    async def list_slices(self, service: str) -> list[Json]:
        """The EndpointSlices of the Service, mirrored ones included."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{self._namespace}/endpointslices"
        chosen = {"labelSelector": f"kubernetes.io/service-name={service}"}
        return [*items(await self._call("GET", path, chosen), "items")]

    async def create_event(self, body: Json) -> None:
        """POST an Event."""
        await self._call("POST", self._core("events"), None, body)

    async def allowed(self, verb: str, resource: str, group: str = "", name: str = "") -> bool:
        """Whether the API server would allow `verb` on `resource` in our namespace (SelfSubjectAccessReview)."""
        attributes = {
            "namespace": self._settings.identity.namespace,
            "verb": verb,
            "group": group,
            "resource": resource,
            "name": name,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self._call(
            "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", None, body
        )
        return at(answer, "status", "allowed") is True

    # --- how it is asked -----------------------------------------------------------------------------

    def _core(self, resource: str, name: str = "") -> str:
        path = f"/api/v1/namespaces/{self._namespace}/{resource}"
        return f"{path}/{quote(name, safe='')}" if name else path

    async def _call(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Json | None = None
    ) -> Json:
        outcome = "unreachable"
        try:
            status, headers, data = await self._send(method, path, query, body)
            if status == 401:
                # A token may be rotated before its minute is over: read it again, once.
                self._token_read = float("-inf")
                status, headers, data = await self._send(method, path, query, body)
            outcome = str(status)
        finally:
            self._count(method, outcome)
        answer = _parse(data)
        if 200 <= status < 300:
            if answer is None:
                raise UnreachableError(
                    0, "BadAnswer", f"{method} was answered {status} without a JSON object"
                )
            return answer
        raise api_error(status, headers.get("Retry-After", ""), answer)

    async def _send(
        self, method: str, path: str, query: Mapping[str, str] | None, body: Json | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            async with asyncio.timeout(times.CALL):
                api = await self._client()
                response = await api.call_api(
                    path,
                    method,
                    query_params=list((query or {}).items()),
                    header_params={
                        "Accept": "application/json",
                        "Content-Type": content,
                        "Authorization": f"Bearer {self._bearer()}",
                    },
                    body=body,
                    _preload_content=False,
                    _request_timeout=times.CALL,
                )
                try:
                    return response.status, response.headers, await _bounded(response)
                finally:
                    response.release()
        except TimeoutError as error:
            raise UnreachableError(0, "Timeout", f"no answer to {method} within {times.CALL:g} s") from error
        except aiohttp.ClientConnectorCertificateError as error:
            await self._close()  # the CA may have been rotated: it is read again at the next call
            raise UnreachableError(
                0,
                "BadCertificate",
                f"{self._settings.api_url} is not vouched for by {self._settings.ca_file}",
            ) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UnreachableError(0, type(error).__name__, str(error)[:200]) from error

    def _bearer(self) -> str:
        now = asyncio.get_running_loop().time()
        if now - self._token_read > TOKEN_AGE:
            path = self._settings.token_file
            try:
                found = path.read_text(encoding="ascii").strip()
            except (OSError, UnicodeError) as error:
                if self._token:
                    return self._token
                raise UnauthorizedError(
                    0,
                    "NoToken",
                    f"{path} can't be read ({type(error).__name__}); is automountServiceAccountToken off?",
                ) from error
            if (
                found
            ):  # kubelet replaces the file by rename, others may truncate it first: keep the former one
                self._token, self._token_read = found, now
                self._hide(found)
        if not self._token:
            raise UnauthorizedError(0, "NoToken", f"{self._settings.token_file} is empty")
        return self._token

    async def _client(self) -> Client:
        if self._api is None:
            self._api = await connect(self._settings.api_url, self._settings.ca_file)
            self._api.user_agent = MANAGER
        return self._api

    async def _close(self) -> None:
        if self._api is not None:
            api, self._api = self._api, None
            await api.close()


def _writing(dry_run: bool) -> dict[str, str]:
    query = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
    return {**query, "dryRun": "All"} if dry_run else query


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    async for chunk in response.content.iter_chunked(65536):
        data += chunk
        if len(data) > BODY:
            raise UnreachableError(0, "BadAnswer", f"an answer of more than {BODY} bytes")
    return bytes(data)


def _parse(data: bytes) -> Json | None:
    with suppress(ValueError, RecursionError):
        found = json.loads(data)
        if isinstance(found, dict):
            return found
    return None
