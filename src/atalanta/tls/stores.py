"""Key stores and trust stores in PKCS12 and PEM, recognized by their contents (as in Java).

JKS is Java's own, deprecated format; the error text shows how to convert it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InternalError, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from atalanta.files.regular import read_regular
from atalanta.tls.errors import TlsError

STORE_BYTES_MAX: Final = 1024 * 1024
REVOKED_BYTES_MAX: Final = 16 * 1024 * 1024
JAVA_MAGIC: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
# Exceptions of cryptography for invalid stores: InternalError for keys that OpenSSL refuses.
UNREADABLE: Final = (ValueError, UnsupportedAlgorithm, InternalError, x509.InvalidVersion)
PEM_MARK: Final = b"-----BEGIN "
PKCS12: Final = "PKCS12"
PEM: Final = "PEM"
# Java also reads PKCS12 under the name JKS, Artemis' default type.
TYPES: Final = {"": "", "JKS": "", "PKCS12": PKCS12, "PFX": PKCS12, "PEM": PEM}


@dataclass
class KeyMaterial:
    """A private key, encrypted with `passphrase`, and its certificate chain, own certificate first."""

    key_pem: bytes
    chain_pem: bytes


def read_key_store(
    path: Path, password: str, kind: str, alias: str, passphrase: bytes
) -> KeyMaterial:
    """Reads a key store. TlsError names `keyStorePath` and the problem."""
    data, kind = _read("keyStore", path, kind)
    secret = password.encode("utf-8") or None
    if kind == PEM:
        return _pem_key(path, data, secret, passphrase)
    try:
        store = pkcs12.load_pkcs12(data, secret)
    except UNREADABLE as error:
        raise _unreadable("keyStore", path, error) from error
    if store.key is None or store.cert is None:
        raise TlsError(f"keyStorePath: {path} holds no private key with its certificate")
    named = (store.cert.friendly_name or b"").decode("utf-8", "replace")
    if alias and named and named.lower() != alias.lower():
        raise TlsError(f"keyStoreAlias: the key in {path} is called {named!r}, not '{alias}'")
    certificates = [store.cert.certificate, *(more.certificate for more in store.additional_certs)]
    chain = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)
    return KeyMaterial(_sealed(store.key, passphrase), chain)


def read_trust_store(path: Path, password: str, kind: str) -> str:
    """Returns the certificates of a trust store as PEM. TlsError names `trustStorePath`."""
    data, kind = _read("trustStore", path, kind)
    if kind == PEM:
        try:
            found = x509.load_pem_x509_certificates(data)
        except UNREADABLE as error:
            raise TlsError(f"trustStorePath: {path} holds no certificate: {error}") from error
    else:
        try:
            store = pkcs12.load_pkcs12(data, password.encode("utf-8") or None)
        except UNREADABLE as error:
            raise _unreadable("trustStore", path, error) from error
        found = [more.certificate for more in store.additional_certs]
        if store.cert is not None:
            found.append(store.cert.certificate)
    if not found:
        raise TlsError(f"trustStorePath: {path} holds no certificate")
    return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in found)


def read_revoked(path: Path) -> str:
    """A list of revoked certificates as PEM. TlsError names `crlPath`."""
    data = _bytes("crlPath", path, REVOKED_BYTES_MAX)
    try:
        if PEM_MARK in data:
            revoked = x509.load_pem_x509_crl(data)
        else:
            revoked = x509.load_der_x509_crl(data)
    except UNREADABLE as error:
        raise TlsError(f"crlPath: {path} is not a list of revoked certificates: {error}") from error
    return revoked.public_bytes(serialization.Encoding.PEM).decode()


def _pem_key(path: Path, data: bytes, secret: bytes | None, passphrase: bytes) -> KeyMaterial:
    try:
        key = serialization.load_pem_private_key(data, secret)
    except TypeError:
        if secret is None:
            raise TlsError(f"keyStorePassword: the key in {path} needs one") from None
        # A password is given, but the key has none: not an error, as in Java.
        key = serialization.load_pem_private_key(data, None)
    except UNREADABLE as error:
        raise TlsError(f"keyStorePath: the key in {path} cannot be read: {error}") from error
    try:
        chain = x509.load_pem_x509_certificates(data)
    except UNREADABLE as error:
        raise TlsError(f"keyStorePath: {path} holds no certificate: {error}") from error
    # The key's own certificate must be the first, wherever it is in the file.
    try:
        public = _public_bytes(key.public_key())
        own = [each for each in chain if _public_bytes(each.public_key()) == public]
    except UNREADABLE as error:
        raise TlsError(f"keyStorePath: a certificate in {path} cannot be read: {error}") from error
    if not own:
        raise TlsError(f"keyStorePath: no certificate in {path} belongs to the key in it")
    ordered = [own[0], *(each for each in chain if each is not own[0])]
    pem = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in ordered)
    return KeyMaterial(_sealed(key, passphrase), pem)


def _public_bytes(key: object) -> bytes:
    made: bytes = key.public_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return made


def _sealed(key: object, passphrase: bytes) -> bytes:
    """Returns the key encrypted, as OpenSSL reads it, since it is written to a file."""
    made: bytes = key.private_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase),
    )
    return made


def _read(which: str, path: Path, kind: str) -> tuple[bytes, str]:
    wanted = TYPES.get(kind.upper())
    if wanted is None:
        raise TlsError(f"{which}Type: '{kind}' is not supported: PKCS12 and PEM are")
    data = _bytes(f"{which}Path", path, STORE_BYTES_MAX)
    java = JAVA_MAGIC.get(data[:4])
    if java is not None:
        # Classic ships broker.ks and broker.ts: both need a file of their own.
        target = path.with_name(f"{path.stem}-trust.p12") if which == "trustStore" else path.with_suffix(".p12")
        raise TlsError(
            f"{which}Path: {path} is a Java key store ({java}). Convert it: keytool -importkeystore "
            f"-srckeystore {path} -destkeystore {target} -deststoretype PKCS12"
        )
    return data, wanted or (PEM if PEM_MARK in data else PKCS12)


def _bytes(parameter: str, path: Path, bytes_max: int) -> bytes:
    try:
        data = read_regular(path, bytes_max)
    except OSError as error:
        raise TlsError(f"{parameter}: {path} cannot be read: {error.strerror}") from error
    if len(data) > bytes_max:
        raise TlsError(f"{parameter}: {path} is larger than {bytes_max} bytes")
    return data


def _unreadable(which: str, path: Path, error: Exception) -> TlsError:
    return TlsError(
        f"{which}Path: {path} cannot be opened: a wrong {which}Password, or not a PKCS12 file ({error})"
    )
