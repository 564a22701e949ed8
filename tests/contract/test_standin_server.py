"""The stand-in as a server: TLS, tokens, what it records, its command, and the agent's own client library."""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import kubernetes_asyncio
import pytest

from sandbox.apiclient import MERGE_PATCH, Access, ApiClient
from sandbox.die_with_parent import die_with_parent
from sandbox.objects import create_service, services
from sandbox.standin import StandIn
from tests.contract.objects import UI, patch_service, service_body

ROOT = Path(__file__).parents[2]
RULE = {"apiGroups": [""], "resources": ["services"], "verbs": ["get"], "resourceNames": ["ui"]}


@pytest.fixture
async def standin() -> AsyncIterator[StandIn]:
    """A stand-in over TLS with a Service called ``ui`` in the namespace ``default``."""
    async with StandIn.start(tls=True) as running:
        await create_service(running.admin, "default", "ui", selector=UI)
        yield running


async def test_every_request_is_recorded(standin: StandIn) -> None:
    await patch_service(standin.admin, "default", "ui", {"spec": {"selector": {"a": None}}}, dryRun="All")
    [seen] = await standin.recording.until(lambda seen: seen.verb == "patch" and seen.ended)
    assert (seen.method, seen.path, seen.query) == ("PATCH", services("default", "ui"), {"dryRun": "All"})
    assert (seen.resource, seen.name, seen.status) == ("services", "ui", 200)
    assert (seen.content_type, seen.body) == (MERGE_PATCH, b'{"spec": {"selector": {"a": null}}}')
    assert seen.json == {"spec": {"selector": {"a": None}}}
    assert "aiohttp" in seen.user_agent
    assert [seen.at for seen in standin.requests] == sorted(seen.at for seen in standin.requests)


async def test_waiting_for_a_request_ends(standin: StandIn) -> None:
    with pytest.raises(TimeoutError):
        await standin.recording.until(lambda seen: seen.verb == "delete", within=0.01)


async def test_the_certificate_of_a_stranger_is_not_trusted() -> None:
    async with StandIn.start(tls=True, trusted=False) as stranger:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await stranger.admin.request("GET", "/readyz")
        assert stranger.requests == []


async def test_strict_verification_accepts_the_ca(standin: StandIn) -> None:
    assert standin.ca_file is not None
    context = ssl.create_default_context(cafile=standin.ca_file)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{standin.url}/readyz", ssl=context) as answer,
    ):
        assert answer.status == 200


async def test_a_granted_token_is_good_while_its_account_exists(standin: StandIn) -> None:
    token = standin.grant("default", "agent", [RULE])
    path = services("default", "ui")
    assert (await standin.admin.request("GET", path, token=token)).status == 200
    assert (await standin.admin.request("PATCH", path, {}, token=token)).status == 403
    account = "/api/v1/namespaces/default/serviceaccounts/agent"
    (await standin.admin.request("DELETE", account)).ok()
    assert (await standin.admin.request("GET", path, token=token)).status == 401
    (await standin.admin.request("POST", account.rpartition("/")[0], {"metadata": {"name": "agent"}})).ok()
    assert (await standin.admin.request("GET", path, token=token)).status == 401


async def test_a_forgotten_version_is_expired(standin: StandIn) -> None:
    await create_service(standin.admin, "default", "other")
    standin.store.ledger.forget()
    async with standin.admin.watch(services("default"), {"resourceVersion": "1"}) as events:
        [only] = [event async for event in events]
    assert (only.type, only.object["code"], only.object["reason"]) == ("ERROR", 410, "Expired")


async def test_open_to_all_needs_no_token() -> None:
    async with StandIn.start(open_to_all=True) as standin:
        nobody = ApiClient(Access(standin.url))
        assert (await nobody.request("POST", services("default"), service_body())).status == 201


async def test_the_library_of_the_agent_can_talk_to_it(standin: StandIn) -> None:
    configuration = kubernetes_asyncio.client.Configuration(host=standin.url)
    configuration.ssl_ca_cert = str(standin.ca_file)
    configuration.api_key = {"BearerToken": standin.token_file.read_text()}
    configuration.api_key_prefix = {"BearerToken": "Bearer"}
    async with kubernetes_asyncio.client.ApiClient(configuration) as client:
        client.set_default_header("Content-Type", MERGE_PATCH)
        core = kubernetes_asyncio.client.CoreV1Api(client)
        patched = await core.patch_namespaced_service(
            "ui",
            "default",
            {"spec": {"selector": {"spark-role": None, "app": "x"}}},
            field_validation="Strict",
            field_manager="tests",
        )
        assert patched.spec.selector == {"app": "x"}
        [sent] = await standin.recording.until(lambda seen: seen.verb == "patch" and seen.ended)
        assert (sent.content_type, sent.query["fieldValidation"]) == (MERGE_PATCH, "Strict")
        standin.settle()
        listed = await core.list_namespaced_service("default")
        assert [item.metadata.name for item in listed.items] == ["ui"]
        slices = kubernetes_asyncio.client.DiscoveryV1Api(client)
        found = await slices.list_namespaced_endpoint_slice(
            "default", label_selector="kubernetes.io/service-name=ui"
        )
        assert [item.endpoints for item in found.items] == [None]
        with pytest.raises(kubernetes_asyncio.client.ApiException) as refused:
            await core.read_namespaced_service("missing", "default")
        assert refused.value.status == 404


async def test_the_command_serves_until_it_is_told_to_end() -> None:
    process = await asyncio.create_subprocess_exec(
        *die_with_parent([sys.executable, "-m", "sandbox.standin", "--tls"]),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            said = dict([(await process.stdout.readline()).decode().strip().split("=", 1) for _ in range(3)])
            api = ApiClient(Access(said["URL"], Path(said["CA_FILE"])))
            assert (await api.request("GET", services("default"))).ok()["items"] == []
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        assert not Path(said["TOKEN_FILE"]).exists()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_the_command_says_that_a_port_is_taken(standin: StandIn) -> None:
    port = standin.url.rpartition(":")[2]
    process = await asyncio.create_subprocess_exec(
        *die_with_parent([sys.executable, "-m", "sandbox.standin", "--port", port]),
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        async with asyncio.timeout(30):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 1
    assert f"can't listen on port {port}" in said.decode()
    assert "--port" in said.decode()
