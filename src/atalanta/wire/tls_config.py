"""TLS of an acceptor, a connector or a client URL, as Artemis' transport parameters describe it (TransportConstants,
SSLSupport). `atalanta.tls` creates the contexts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.kernel.option import OptionGroup, option
from atalanta.kernel.unseen_options import JVM


@dataclass(eq=False, repr=False)
class TlsConfig(OptionGroup):
    """The TLS parameters. Paths are as written: absolute, or relative to the folders that the configuration's owner
    names.
    """

    enabled: bool = option(False, "sslEnabled", "TLS; without it the other options of TLS have no effect")
    key_store_path: str = option(
        "", "keyStorePath", "key and certificates shown to the other side; PKCS12 or PEM"
    )
    key_store_password: str = option("", "keyStorePassword", "password of the key store")
    key_store_type: str = option(
        "", "keyStoreType", "PKCS12 or PEM; if absent, recognised from the file; JKS must be converted"
    )
    key_store_alias: str = option("", "keyStoreAlias", "the key's name, checked where there is one")
    trust_store_path: str = option(
        "", "trustStorePath", "trusted certificates; connectors: the system's if absent"
    )
    trust_store_password: str = option("", "trustStorePassword", "password of the trust store")
    trust_store_type: str = option("", "trustStoreType", "as keyStoreType")
    crl_path: str = option("", "crlPath", "revoked certificates, PEM or DER")
    enabled_cipher_suites: str = option(
        "",
        "enabledCipherSuites",
        "names of Java or OpenSSL, separated by commas; those of TLS 1.3 are on or off together",
    )
    enabled_protocols: str = option(
        "", "enabledProtocols", "TLSv1.2,TLSv1.3 if absent; older ones are refused"
    )
    need_client_auth: bool = option(
        False, "needClientAuth", "acceptors: a client without a certificate is refused"
    )
    want_client_auth: bool = option(
        False, "wantClientAuth", "acceptors: a certificate, if the client has one, must be good"
    )
    verify_host: bool | None = option(
        None,
        "verifyHost",
        "connectors (true if absent): the certificate must name the host",
        kind="bool",
    )
    trust_all: bool = option(False, "trustAll", "connectors: trust any certificate; for tests only")
    sni_host: str = option(
        "",
        "sniHost",
        "connectors: the name asked for; acceptors: a regular expression of names served",
    )
    use_default_ssl_context: bool = option(
        False, "useDefaultSslContext", "connectors: the system's trusted certificates"
    )


# TLS parameters that are not supported: an error if one is set while sslEnabled is true.
TLS_REFUSED: Final[dict[str, str]] = {
    "sslContext": "a Java object cannot be named here",
    "trustManagerFactoryPlugin": "Java classes cannot be loaded",
    "kerb5Config": "Kerberos is not supported",
    "passwordCodec": "Java classes cannot be loaded; write the password as ${name}",
}
TLS_UNUSED: Final[dict[str, str]] = {
    "keyStoreProvider": JVM,
    "trustStoreProvider": JVM,
    "sslProvider": JVM,
    "sslAutoReload": "the key and trust stores are watched with the other files: configuration-file-refresh-period",
    "forceSSLParameters": JVM,
}
# Never sent to peers and clients: the topology is sent before any login.
TLS_PRIVATE: Final = (
    "keyStorePath",
    "keyStorePassword",
    "keyStoreType",
    "keyStoreAlias",
    "keyStoreProvider",
)
