"""A certificate authority for tests, made on the spot by `cryptography`."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey


class Authority:
    """Signs certificates; *folder* holds `ca.pem` and what `server` made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        made = self._builder(self._name, self._key, days=30).add_extension(x509.BasicConstraints(True, 0), True)
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def server(self, name: str, *, days: int = 30, signed: bool = True) -> ssl.SSLContext:
        """A server's TLS for *name*. Negative *days*: it has expired. Not *signed*: by itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._builder(subject, key, days=days, issuer=self._name if signed else subject)
        try:
            alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            alternative = x509.DNSName(name)
        made = made.add_extension(x509.SubjectAlternativeName([alternative]), False)
        file = self._folder / f"{name}{days}{signed}.pem"
        file.write_bytes(
            made.sign(self._key if signed else key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _builder(
        self, subject: x509.Name, key: Key, *, days: int, issuer: x509.Name | None = None
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer or self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=60))
            .not_valid_after(now + datetime.timedelta(days=days))
        )
