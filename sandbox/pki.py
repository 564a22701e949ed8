"""The certificates of one cluster: a CA of its own, the API server's, and one for whoever asks."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

LIFETIME = datetime.timedelta(days=30)
# clocks of one machine agree, but a suspended one may step back a little
LEEWAY = datetime.timedelta(minutes=5)


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key as PEM files."""

    cert_file: Path
    key_file: Path


class Pki:
    """A certificate authority in a folder: ``ca.crt``, ``ca.key`` and what it has issued."""

    def __init__(self, folder: Path, cert: x509.Certificate, key: PrivateKey) -> None:
        self.folder = folder
        self.ca_file = folder / "ca.crt"
        self._cert = cert
        self._key = key

    @classmethod
    def create(cls, folder: Path, name: str) -> Self:
        """Make a new authority called ``name`` in an existing folder."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        public = key.public_key()
        builder = (
            _builder(subject, subject, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )
        cert = builder.sign(key, hashes.SHA256())
        _write(folder / "ca.key", _key_pem(key))
        _write(folder / "ca.crt", cert.public_bytes(serialization.Encoding.PEM))
        return cls(folder, cert, key)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Open an authority that `create` has made; raise FileNotFoundError where there is none."""
        cert = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{folder / 'ca.key'} holds no elliptic-curve key")
        return cls(folder, cert, key)

    def server(self, name: str, hosts: Sequence[str]) -> Certificate:
        """Issue a server's certificate for ``hosts``, each a DNS name or an IP address."""
        return self._issue(name, name, (), hosts, ec.generate_private_key(ec.SECP256R1()))

    def client(self, file: str, user: str, groups: Sequence[str] = ()) -> Certificate:
        """Issue a client's certificate: Kubernetes takes CN for the user and each O for a group.

        The key is RSA, since Spark's Kubernetes client (fabric8) cannot read an elliptic-curve one.
        """
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return self._issue(file, user, groups, (), key)

    def signing_key(self, file: str) -> Certificate:
        """Make a key pair that signs ServiceAccount tokens; ``cert_file`` holds the public key."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = Certificate(self.folder / f"{file}.pub", self.folder / f"{file}.key")
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        _write(made.key_file, _key_pem(key))
        _write(made.cert_file, key.public_key().public_bytes(serialization.Encoding.PEM, form))
        return made

    def kubeconfig(self, file: Path, url: str, client: Certificate) -> Path:
        """Write a kubeconfig for ``client``, whole in one file (JSON is YAML); return its path."""
        cluster = {"server": url, "certificate-authority-data": _base64(self.ca_file)}
        user = {
            "client-certificate-data": _base64(client.cert_file),
            "client-key-data": _base64(client.key_file),
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": "sandbox", "user": user}],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
            "current-context": "sandbox",
        }
        _write(file, json.dumps(content, indent=1).encode())
        return file

    def _issue(
        self, file: str, user: str, groups: Sequence[str], hosts: Sequence[str], key: PrivateKey
    ) -> Certificate:
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        public = key.public_key()
        builder = (
            _builder(subject, self._cert.subject, public)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            # Python 3.13 and newer refuse a chain without it
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        issued = Certificate(self.folder / f"{file}.crt", self.folder / f"{file}.key")
        cert = builder.sign(self._key, hashes.SHA256())
        _write(issued.key_file, _key_pem(key))
        _write(issued.cert_file, cert.public_bytes(serialization.Encoding.PEM))
        return issued


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=public,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - LEEWAY,
        not_valid_after=now + LIFETIME,
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        key_encipherment=not signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_pem(key: PrivateKey) -> bytes:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _base64(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def _write(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)
