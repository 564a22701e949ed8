"""A keystore for a UI that speaks TLS."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

PASSWORD = "changeit"


def write_keystore(file: Path, address: str = "127.0.0.1") -> Mapping[str, str]:
    """Write a PKCS#12 file with a self-signed certificate; return the Spark configuration that uses it.

    Spark then serves HTTPS on one port and redirects to it from another one, both chosen by itself
    (spark.ssl.ui.port, else by spark.ui.port).
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "spark-ui")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(address))]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    encryption = BestAvailableEncryption(PASSWORD.encode())
    file.write_bytes(pkcs12.serialize_key_and_certificates(b"spark-ui", key, certificate, None, encryption))
    return {
        "spark.ssl.ui.enabled": "true",
        "spark.ssl.ui.keyStore": str(file),
        "spark.ssl.ui.keyStoreType": "PKCS12",
        "spark.ssl.ui.keyStorePassword": PASSWORD,
        "spark.ssl.ui.keyPassword": PASSWORD,
    }
