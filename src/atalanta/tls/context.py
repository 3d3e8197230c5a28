"""SSL contexts for acceptors, connectors and clients."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from atalanta.tls.ciphers import choose_suites, choose_versions
from atalanta.tls.errors import TlsError
from atalanta.wire.tls_config import TlsConfig

SHORT_KEY: Final = "EE_KEY_TOO_SMALL"  # the reason of OpenSSL


@dataclass(frozen=True)
class ClientTls:
    """The TLS settings of outgoing connections. `sni_host` replaces the host in SNI and in the check of the
    certificate."""

    context: ssl.SSLContext
    sni_host: str = ""

    def server_name(self, host: str) -> str:
        return self.sni_host or host


def server_context(config: TlsConfig, folders: Sequence[Path]) -> ssl.SSLContext:
    """Creates the context of an acceptor. `folders` are searched for relative paths. TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    fill_server_context(context, config, folders)
    return context


def fill_server_context(
    context: ssl.SSLContext, config: TlsConfig, folders: Sequence[Path]
) -> None:
    """Fills a context; also one in use: connections from now on get the new key."""
    if not config.key_store_path:
        raise TlsError("keyStorePath: an acceptor with sslEnabled needs a key and a certificate")
    for name, wanted in (("verifyHost", config.verify_host), ("trustAll", config.trust_all)):
        if wanted:
            raise TlsError(f"{name}: not supported for an acceptor")
    choose_versions(context, config.enabled_protocols)
    choose_suites(context, config.enabled_cipher_suites)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    _load_key(context, config, folders)
    if config.need_client_auth or config.want_client_auth:
        if not config.trust_store_path:
            raise TlsError("trustStorePath: needClientAuth and wantClientAuth need one")
        _load_trust(context, config, folders)
        need = config.need_client_auth
        context.verify_mode = ssl.CERT_REQUIRED if need else ssl.CERT_OPTIONAL
    _serve_names(context, config.sni_host)


def client_tls(config: TlsConfig, folders: Sequence[Path]) -> ClientTls:
    """Creates the settings of a connector or a client. TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    choose_versions(context, config.enabled_protocols)
    choose_suites(context, config.enabled_cipher_suites)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    if config.need_client_auth or config.want_client_auth:
        raise TlsError("needClientAuth and wantClientAuth: only acceptors ask for certificates")
    if config.trust_all:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context.check_hostname = config.verify_host is not False
        if config.trust_store_path and not config.use_default_ssl_context:
            _load_trust(context, config, folders)
        else:
            context.load_default_certs()
    if config.key_store_path:
        _load_key(context, config, folders)
    return ClientTls(context, config.sni_host)


def find_file(text: str, folders: Sequence[Path]) -> Path:
    """Returns the first existing file, else the first candidate, for the error text."""
    path = Path(text.removeprefix("file:"))
    candidates = [folder / path for folder in folders] or [path]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    return candidates[0]


def _load_key(context: ssl.SSLContext, config: TlsConfig, folders: Sequence[Path]) -> None:
    # Imported only to read a store: most nodes have none.
    import tempfile

    from atalanta.tls.stores import read_key_store

    password = _plain("keyStorePassword", config.key_store_password)
    passphrase = os.urandom(32).hex()
    material = read_key_store(
        find_file(config.key_store_path, folders),
        password,
        config.key_store_type,
        config.key_store_alias,
        passphrase.encode("ascii"),
    )
    # OpenSSL only takes a file. Its key is encrypted, and the passphrase stays in this process.
    with tempfile.TemporaryDirectory(prefix="atalanta-") as folder:
        path = Path(folder) / "key.pem"
        path.write_bytes(material.key_pem + material.chain_pem)
        try:
            context.load_cert_chain(path, password=passphrase)
        except ssl.SSLError as error:
            raise TlsError(f"keyStorePath: {config.key_store_path}: {_why_refused(error)}") from error


def _why_refused(error: ssl.SSLError) -> str:
    """Returns why OpenSSL takes no key or certificate of a store that could be read."""
    if error.reason != SHORT_KEY:
        return str(error)
    command = "keytool -genkeypair -alias broker -keyalg RSA -keysize 2048 -storetype PKCS12 -keystore NEW.p12"
    return f"its key is too short for TLS. Make another one: {command}"


def _load_trust(context: ssl.SSLContext, config: TlsConfig, folders: Sequence[Path]) -> None:
    import tempfile  # as above

    from atalanta.tls.stores import read_revoked, read_trust_store

    password = _plain("trustStorePassword", config.trust_store_password)
    path = find_file(config.trust_store_path, folders)
    context.load_verify_locations(cadata=read_trust_store(path, password, config.trust_store_type))
    # As in Java, every certificate in the trust store is trusted, root or not.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    if config.crl_path:
        with tempfile.NamedTemporaryFile("w", prefix="atalanta-", suffix=".pem") as file:
            file.write(read_revoked(find_file(config.crl_path, folders)))
            file.flush()
            context.load_verify_locations(cafile=file.name)
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def _serve_names(context: ssl.SSLContext, pattern: str) -> None:
    """Records the requested server name as `asked_name` of the connection, and refuses names that do not match
    `pattern`.

    Clients without SNI are accepted (like Java's SNIMatcher); without a pattern all names are.
    """
    try:
        served = re.compile(pattern) if pattern else None
    except re.error as error:
        raise TlsError(f"sniHost: '{pattern}' is not a regular expression: {error}") from error

    def check(connection: Any, name: str | None, _: ssl.SSLContext) -> int | None:
        connection.asked_name = name
        if name is None or served is None or served.fullmatch(name):
            return None
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    context.sni_callback = check


def _plain(parameter: str, password: str) -> str:
    """Unmasks a password with the key of the environment; a broker.xml's own key was applied before."""
    if not (password.startswith("ENC(") and password.endswith(")")):
        return password
    from atalanta.tls.password_codec import unmask  # imported only for masked passwords

    try:
        return unmask(password)
    except ValueError as error:
        raise TlsError(f"{parameter}: {error}") from error
