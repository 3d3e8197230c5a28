"""Contexts made of parameters, tried against each other in memory; and every clear refusal."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from atalanta.tls.ciphers import openssl_name
from atalanta.tls.context import client_tls, server_context
from atalanta.tls.errors import TlsError
from atalanta.wire.endpoint import read_tls
from atalanta.wire.tls_config import TlsConfig
from tests.certificates import PASSWORD, Authority


class Stores:
    """The files of one authority; `params` are URL parameters."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.server = self.authority.holder("server", "localhost", "127.0.0.1")
        self.client = self.authority.holder("client")

    def acceptor(self, **params: object) -> TlsConfig:
        store = self.server.key_store(self.folder)
        return config(keyStorePath=store, keyStorePassword=PASSWORD, **params)

    def connector(self, **params: object) -> TlsConfig:
        return config(
            trustStorePath=self.authority.trust_store(self.folder),
            trustStorePassword=PASSWORD,
            **params,
        )

    def asking(self, **params: object) -> TlsConfig:
        """An acceptor that asks for client certificates."""
        trust = self.authority.trust_store(self.folder)
        return self.acceptor(
            needClientAuth="true", trustStorePath=trust, trustStorePassword=PASSWORD, **params
        )


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    return Stores(tmp_path)


def config(**params: object) -> TlsConfig:
    made = read_tls({"sslEnabled": "true", **{key: str(value) for key, value in params.items()}})
    assert made is not None
    return made


def shake(acceptor: TlsConfig, connector: TlsConfig, host: str = "localhost") -> str:
    """Both sides in memory; the version agreed on, or ssl.SSLError."""
    near, far = ssl.MemoryBIO(), ssl.MemoryBIO()
    secure = client_tls(connector, ())
    client = secure.context.wrap_bio(near, far, server_hostname=secure.server_name(host))
    server = server_context(acceptor, ()).wrap_bio(far, near, server_side=True)
    waiting = [client, server]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)
    client.write(b"x")
    assert server.read(1) == b"x"
    return str(client.version())


def test_pkcs12_and_pem_are_told_apart_by_their_content(stores: Stores, tmp_path: Path) -> None:
    assert shake(stores.acceptor(), stores.connector()) == "TLSv1.3"
    pem = config(keyStorePath=stores.server.key_pem(tmp_path))
    trusting = config(trustStorePath=stores.authority.trust_pem(tmp_path), trustStoreType="PEM")
    assert shake(pem, trusting) == "TLSv1.3"
    sealed = stores.server.key_pem(tmp_path, "secret")
    assert shake(config(keyStorePath=sealed, keyStorePassword="secret"), trusting) == "TLSv1.3"
    # The default type of Artemis is JKS, and Java opens PKCS12 under that name.
    assert shake(stores.acceptor(keyStoreType="JKS"), stores.connector()) == "TLSv1.3"


def test_a_chain_is_sent_whole(stores: Stores, tmp_path: Path) -> None:
    authority = stores.authority
    store = stores.server.key_store(tmp_path, authority.certificate)
    acceptor = config(keyStorePath=store, keyStorePassword=PASSWORD)
    assert shake(acceptor, stores.connector()) == "TLSv1.3"


def test_a_certificate_that_is_no_root_can_be_believed_itself(
    stores: Stores, tmp_path: Path
) -> None:
    stores.server.key_pem(tmp_path)
    assert shake(stores.acceptor(), config(trustStorePath=tmp_path / "server.pem")) == "TLSv1.3"


def test_the_host_must_be_named(stores: Stores) -> None:
    assert shake(stores.acceptor(), stores.connector(), "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError, match="elsewhere"):
        shake(stores.acceptor(), stores.connector(), "elsewhere")
    assert shake(stores.acceptor(), stores.connector(verifyHost="false"), "elsewhere")
    assert shake(stores.acceptor(), stores.connector(sniHost="localhost"), "elsewhere")


def test_strangers_are_not_believed(stores: Stores, tmp_path: Path) -> None:
    other = config(trustStorePath=Authority("other").trust_pem(tmp_path))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(stores.acceptor(), other)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(stores.acceptor(), config())  # the system's certificates
    assert shake(stores.acceptor(), config(trustAll="true"))


def test_clients_certificates(stores: Stores, tmp_path: Path) -> None:
    key = {"keyStorePath": stores.client.key_store(tmp_path), "keyStorePassword": PASSWORD}
    assert shake(stores.asking(enabledProtocols="TLSv1.2"), stores.connector(**key))
    with pytest.raises(ssl.SSLError):
        shake(stores.asking(enabledProtocols="TLSv1.2"), stores.connector())
    stranger = Authority("other").holder("stranger").key_store(tmp_path)
    with pytest.raises(ssl.SSLError):
        shake(
            stores.asking(enabledProtocols="TLSv1.2"),
            stores.connector(keyStorePath=stranger, keyStorePassword=PASSWORD),
        )


def test_revoked_clients(stores: Stores, tmp_path: Path) -> None:
    key = {"keyStorePath": stores.client.key_store(tmp_path), "keyStorePassword": PASSWORD}
    revoked = stores.authority.revoke(tmp_path, stores.client)
    with pytest.raises(ssl.SSLError):
        shake(stores.asking(crlPath=revoked, enabledProtocols="TLSv1.2"), stores.connector(**key))
    nobody = stores.authority.revoke(tmp_path)
    assert shake(
        stores.asking(crlPath=nobody, enabledProtocols="TLSv1.2"), stores.connector(**key)
    )


def test_versions_and_suites(stores: Stores) -> None:
    assert shake(stores.acceptor(enabledProtocols="TLSv1.2"), stores.connector()) == "TLSv1.2"
    java = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    assert shake(stores.acceptor(enabledCipherSuites=java), stores.connector()) == "TLSv1.2"
    newer = stores.acceptor(enabledCipherSuites="TLS_AES_128_GCM_SHA256")
    assert shake(newer, stores.connector()) == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        shake(newer, stores.connector(enabledProtocols="TLSv1.2"))


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_names_of_suites(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(openssl)


def test_served_names(stores: Stores) -> None:
    picky = stores.acceptor(sniHost="(.*\\.)?localhost")
    assert shake(picky, stores.connector())
    assert shake(picky, stores.connector(), "127.0.0.1")  # an address asks for no name
    with pytest.raises(ssl.SSLError):
        shake(picky, stores.connector(verifyHost="false"), "elsewhere")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"keyStorePath": ""}, "keyStorePath: an acceptor"),
        ({"keyStorePath": "none.p12"}, "keyStorePath: none.p12 cannot be read: No such file"),
        ({"keyStorePassword": "wrong"}, "a wrong keyStorePassword"),
        ({"keyStorePassword": "ENC(abc)"}, "keyStorePassword: the masked password cannot be read"),
        ({"keyStoreType": "BKS"}, "keyStoreType: 'BKS' is not supported"),
        ({"keyStoreAlias": "other"}, "keyStoreAlias: the key in .* is called 'server'"),
        ({"needClientAuth": "true"}, "trustStorePath: needClientAuth"),
        ({"enabledProtocols": "TLSv1"}, "TLSv1 is broken and not served"),
        ({"enabledProtocols": "TLSv9"}, "TLSv9 is unknown"),
        ({"enabledCipherSuites": "TLS_NULL"}, "enabledCipherSuites: TLS_NULL is unknown"),
        ({"sniHost": "("}, "sniHost: .* is not a regular expression"),
        ({"verifyHost": "true"}, "verifyHost: not supported for an acceptor"),
    ],
)
def test_refusals(stores: Stores, params: dict[str, str], words: str) -> None:
    key = {"keyStorePath": stores.server.key_store(stores.folder), "keyStorePassword": PASSWORD}
    with pytest.raises(TlsError, match=words):
        server_context(config(**(key | params)), ())


def test_a_java_key_store_is_refused_with_the_way_to_convert_it(tmp_path: Path) -> None:
    (tmp_path / "broker.ks").write_bytes(b"\xfe\xed\xfe\xed" + bytes(40))
    with pytest.raises(TlsError, match=r"JKS.*keytool -importkeystore.*broker\.p12"):
        server_context(config(keyStorePath="broker.ks"), (tmp_path,))
    (tmp_path / "broker.ts").write_bytes(b"\xfe\xed\xfe\xed" + bytes(40))
    with pytest.raises(TlsError, match=r"JKS.*keytool -importkeystore.*broker-trust\.p12"):
        client_tls(config(trustStorePath="broker.ts"), (tmp_path,))


def test_a_short_key_is_refused_with_the_way_to_make_a_longer_one(tmp_path: Path) -> None:
    """The key that ActiveMQ Classic ships (conf/broker.ks) has 1024 bits: its Java takes it, OpenSSL does not."""
    short = Authority("broker", rsa.generate_private_key(65537, 1024)).key_store(tmp_path)
    with pytest.raises(TlsError, match=r"its key is too short for TLS.*keytool -genkeypair .*-keysize 2048"):
        server_context(config(keyStorePath=short, keyStorePassword=PASSWORD), ())


def test_files_that_are_no_stores(stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"junk")
    (tmp_path / "half.pem").write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA")
    for name in ("junk", "half.pem"):
        with pytest.raises(TlsError, match="keyStorePath"):
            server_context(config(keyStorePath=tmp_path / name), ())
        with pytest.raises(TlsError, match="trustStorePath"):
            client_tls(config(trustStorePath=tmp_path / name), ())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TlsError, match="keyStorePath: .* is a named pipe"):
        server_context(config(keyStorePath=tmp_path / "pipe"), ())
    with pytest.raises(TlsError, match="trustStorePath: .* is a named pipe"):
        client_tls(config(trustStorePath=tmp_path / "pipe"), ())
    stranger = stores.client.key_pem(tmp_path).read_bytes()
    own = stores.authority.trust_pem(tmp_path).read_bytes()
    mixed = tmp_path / "mixed.pem"
    mixed.write_bytes(own + stranger[stranger.index(b"-----BEGIN PRIVATE") :])
    with pytest.raises(TlsError, match="belongs to the key"):
        server_context(config(keyStorePath=mixed), ())


def test_relative_paths_are_looked_for_in_every_folder(stores: Stores, tmp_path: Path) -> None:
    stores.server.key_store(tmp_path)
    acceptor = config(keyStorePath="server.p12", keyStorePassword=PASSWORD)
    server_context(acceptor, (tmp_path / "etc", tmp_path))
    with pytest.raises(TlsError, match=r"etc/server\.p12 cannot be read"):
        server_context(acceptor, (tmp_path / "etc",))
