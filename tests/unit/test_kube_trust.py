"""Who the client believes and what it shows: token, CA, certificates, proxies, redirects."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent.act import kube as kube_module
from agent.act.kube import Kube
from agent.model import ApiError, UnauthorizedError, UnreachableError
from sandbox.pki import LEEWAY, LIFETIME
from sandbox.standin.resources import SERVICE_ACCOUNTS
from tests.support.make import NAMESPACE, settings
from tests.unit.test_kube import connected, settings_for

# --- the token --------------------------------------------------------------------------------------------


async def test_a_trailing_newline_is_no_part_of_the_token() -> None:
    async with connected() as (api, kube):
        api.token_file.write_text(api.token_file.read_text() + "\n")
        assert await kube.list_services({}) == []


async def test_a_rotated_token_is_read_again_at_the_first_refusal() -> None:
    async with connected() as (api, kube):
        api.token_file.write_text(api.grant(NAMESPACE, "first", EVERYTHING))
        await kube.list_services({})
        api.store.delete(SERVICE_ACCOUNTS, NAMESPACE, "first")
        api.token_file.write_text(api.grant(NAMESPACE, "second", EVERYTHING))
        before = len(api.requests)

        assert await kube.list_services({}) == []

        assert [request.status for request in api.requests[before:]] == [401, 200]


async def test_a_token_that_is_refused_twice_is_told_after_two_requests() -> None:
    async with connected() as (api, kube):
        api.token_file.write_text("nobody-issued-this")
        with pytest.raises(UnauthorizedError):
            await kube.list_services({})
        assert [request.status for request in api.requests] == [401, 401]


async def test_a_token_file_that_is_missing_is_told_and_found_later() -> None:
    async with connected() as (api, kube):
        token = api.token_file.read_text()
        api.token_file.unlink()
        with pytest.raises(UnauthorizedError, match="automountServiceAccountToken"):
            await kube.list_services({})
        assert api.requests == []
        api.token_file.write_text(token)
        assert await kube.list_services({}) == []


@pytest.mark.parametrize("spoil", [lambda file: file.write_text(""), Path.unlink], ids=["empty", "missing"])
async def test_a_token_file_that_is_gone_for_a_moment_costs_nothing(
    spoil: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_module, "TOKEN_AGE", -1.0)  # read at each call
    async with connected() as (api, kube):
        await kube.list_services({})
        spoil(api.token_file)
        assert await kube.list_services({}) == []


async def test_an_empty_token_file_at_first_is_told() -> None:
    async with connected() as (api, kube):
        api.token_file.write_text("\n")
        with pytest.raises(UnauthorizedError, match="empty"):
            await kube.list_services({})
        assert api.requests == []


EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]

# --- the server -------------------------------------------------------------------------------------------


async def test_tls_with_the_clusters_ca() -> None:
    async with connected(tls=True) as (_, kube):
        assert await kube.list_services({}) == []


async def test_a_certificate_of_another_ca_is_told_and_gets_no_token() -> None:
    async with connected(tls=True, trusted=False) as (api, kube):
        with pytest.raises(UnreachableError) as raised:
            await kube.list_services({})
        assert raised.value.reason == "BadCertificate"
        assert str(api.ca_file) in str(raised.value)
        assert api.requests == []


async def test_a_ca_that_is_missing_is_told_and_found_later(tmp_path: Path) -> None:
    async with connected(tls=True) as (api, _):
        assert api.ca_file is not None
        given = replace(settings_for(api), ca_file=tmp_path / "ca.crt")
        async with Kube.open(given) as kube:
            with pytest.raises(UnreachableError, match=r"ca\.crt"):
                await kube.list_services({})
            given.ca_file.write_text("no certificate")
            with pytest.raises(UnreachableError, match=r"ca\.crt"):
                await kube.list_services({})
            given.ca_file.write_bytes(api.ca_file.read_bytes())
            assert await kube.list_services({}) == []


async def test_a_ca_that_is_renewed_is_read_again() -> None:
    async with connected(tls=True, trusted=False) as (api, kube):
        assert api.ca_file is not None
        with pytest.raises(UnreachableError):
            await kube.list_services({})
        stranger = api.ca_file.parent.parent / "stranger" / "ca.crt"
        api.ca_file.write_bytes(stranger.read_bytes())
        assert await kube.list_services({}) == []


def bare(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A CA and a server's certificate without key identifiers and key usage, as old clusters have them."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "old-ca")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "apiserver")])
    start = datetime.datetime.now(datetime.UTC) - LEEWAY

    def certificate(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + LIFETIME)
        )

    ca = certificate(ca_name, ca_key.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    server = certificate(name, key.public_key()).add_extension(
        x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
    )
    pem = serialization.Encoding.PEM
    (folder / "ca.crt").write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    (folder / "server.crt").write_bytes(server.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    (folder / "server.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    return folder / "ca.crt", context


@asynccontextmanager
async def canned(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that answers each connection with the same bytes; its port, and the heads that it was sent."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1], heads


LIST = b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\n{"items": []}'


async def test_a_ca_without_key_identifiers_is_good_enough_but_the_name_still_counts(tmp_path: Path) -> None:
    ca_file, context = bare(tmp_path)
    (tmp_path / "token").write_text("secret")
    async with canned(LIST, context) as (port, heads):
        given = replace(
            settings(), api_url=f"https://127.0.0.1:{port}", token_file=tmp_path / "token", ca_file=ca_file
        )
        async with Kube.open(given) as kube:
            assert await kube.list_services({}) == []
        assert len(heads) == 1
        async with Kube.open(replace(given, api_url=f"https://localhost:{port}")) as kube:
            with pytest.raises(UnreachableError):
                await kube.list_services({})
        assert len(heads) == 1


async def test_proxies_and_a_netrc_of_the_environment_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password word\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with canned(LIST) as (proxy, at_proxy), canned(LIST) as (server, heads):
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
        monkeypatch.setenv("NO_PROXY", "10.96.0.0/12")
        (tmp_path / "token").write_text("secret")
        given = replace(settings(), api_url=f"http://127.0.0.1:{server}", token_file=tmp_path / "token")
        async with Kube.open(given) as kube:
            assert await kube.list_services({}) == []
        assert at_proxy == []
        assert b"Authorization: Bearer secret\r\n" in heads[0]
        assert b"Basic" not in heads[0]


async def test_a_redirect_is_not_followed_and_takes_no_token_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    async with canned(LIST) as (elsewhere, there):
        moved = f"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:{elsewhere}/\r\nContent-Length: 0\r\n\r\n"
        async with canned(moved.encode()) as (server, heads):
            given = replace(settings(), api_url=f"http://127.0.0.1:{server}", token_file=tmp_path / "token")
            async with Kube.open(given) as kube:
                with pytest.raises(UnreachableError, match="307"):
                    await kube.list_services({})
        assert len(heads) == 1
        assert there == []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9\r\n", id="no HTTP"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", id="no JSON"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]", id="no object"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nConnection: close\r\n\r\n" + b"[" * 200_000,
            id="too deep",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b'{"items": []}' + b" " * kube_module.BODY,
            id="too long",
        ),
        pytest.param(
            b"HTTP/1.1 500 No\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!", id="a plain 500"
        ),
    ],
)
async def test_what_is_no_api_server_is_told_as_an_error_of_ours(answer: bytes, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    async with canned(answer) as (server, _):
        given = replace(settings(), api_url=f"http://127.0.0.1:{server}", token_file=tmp_path / "token")
        async with Kube.open(given) as kube:
            with pytest.raises(ApiError):
                await kube.list_services({})
