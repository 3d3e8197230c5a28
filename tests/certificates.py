"""Certificates for tests: an authority, and what it vouches for, as PKCS12 and PEM files."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

PASSWORD = "store-password"
START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
END = datetime.datetime(2090, 1, 1, tzinfo=datetime.UTC)
PEM = serialization.Encoding.PEM
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def name_of(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Holder:
    """A key and its certificate."""

    def __init__(
        self, name: str, key: PrivateKey, certificate: x509.Certificate
    ) -> None:
        self.name = name
        self.key = key
        self.certificate = certificate

    def key_store(self, folder: Path, *chain: x509.Certificate) -> Path:
        """PKCS12, under PASSWORD."""
        path = folder / f"{self.name}.p12"
        sealing = serialization.BestAvailableEncryption(PASSWORD.encode())
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                self.name.encode(), self.key, self.certificate, chain or None, sealing
            )
        )
        return path

    def key_pem(self, folder: Path, password: str = "") -> Path:
        """Certificate and key in one file."""
        path = folder / f"{self.name}.pem"
        sealing: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            sealing = serialization.BestAvailableEncryption(password.encode())
        key = self.key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, sealing)
        path.write_bytes(self.certificate.public_bytes(PEM) + key)
        return path


class Authority(Holder):
    """Signs for others; `trust_store` is what those need who are to believe it."""

    def __init__(self, name: str = "authority", key: PrivateKey | None = None) -> None:
        key = key or ec.generate_private_key(ec.SECP256R1())
        super().__init__(name, key, self._signed(name_of(name), key.public_key(), key, name, True))
        self.revoked: list[x509.Certificate] = []

    def _signed(
        self,
        subject: x509.Name,
        public_key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey,
        key: PrivateKey,
        issuer: str,
        authority: bool,
        hosts: tuple[str, ...] = (),
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(name_of(issuer))
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(START)
            .not_valid_after(END)
            .add_extension(x509.BasicConstraints(authority, None), critical=True)
        )
        if hosts:
            names = [general_name(host) for host in hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(key, hashes.SHA256())

    def holder(self, name: str, *hosts: str) -> Holder:
        """A new key with a certificate for these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(
            name_of(name), key.public_key(), self.key, self.name, False, hosts
        )
        return Holder(name, key, certificate)

    def trust_store(self, folder: Path) -> Path:
        """PKCS12 without a key, under PASSWORD, as keytool -import makes it."""
        path = folder / f"{self.name}-trust.p12"
        entry = pkcs12.PKCS12Certificate(self.certificate, self.name.encode())
        sealing = serialization.BestAvailableEncryption(PASSWORD.encode())
        path.write_bytes(pkcs12.serialize_java_truststore([entry], sealing))
        return path

    def trust_pem(self, folder: Path) -> Path:
        path = folder / f"{self.name}-trust.pem"
        path.write_bytes(self.certificate.public_bytes(PEM))
        return path

    def revoke(self, folder: Path, *holders: Holder) -> Path:
        """A list of revoked certificates."""
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(name_of(self.name))
            .last_update(START)
            .next_update(END)
        )
        for holder in holders:
            entry = x509.RevokedCertificateBuilder()
            serial = holder.certificate.serial_number
            entry = entry.serial_number(serial).revocation_date(START)
            builder = builder.add_revoked_certificate(entry.build())
        path = folder / f"{self.name}.crl"
        path.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(PEM))
        return path


def general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
