"""Stores that hold something else than they should: said by the parameter's name, whatever cryptography says."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from atalanta.tls.errors import TlsError
from atalanta.tls.stores import read_key_store, read_revoked, read_trust_store
from tests.certificates import Authority


def test_a_key_that_openssl_does_not_take_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "server.pem"
    # An X448 key of 32 bytes instead of 56.
    key = "MC4CAQAwBQYDK2VvBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
    path.write_text(f"-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n")
    with pytest.raises(TlsError, match="keyStorePath"):
        read_key_store(path, "", "", "", b"passphrase")


def test_a_list_of_a_version_to_come_cannot_be_read(tmp_path: Path) -> None:
    authority = Authority()
    path = authority.revoke(tmp_path, authority.holder("gone"))
    data = x509.load_pem_x509_crl(path.read_bytes()).public_bytes(Encoding.DER)
    path.write_bytes(data.replace(b"\x02\x01\x01\x30", b"\x02\x01\x03\x30", 1))
    with pytest.raises(TlsError, match="crlPath"):
        read_revoked(path)


def test_a_store_of_more_than_1_mib_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.pem"
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(TlsError, match=r"keyStorePath: .* is larger than 1048576 bytes"):
        read_key_store(path, "", "", "", b"passphrase")
    with pytest.raises(TlsError, match=r"trustStorePath: .* is larger than 1048576 bytes"):
        read_trust_store(path, "", "")


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "list.crl"
    path.write_bytes(b"nothing")
    tracemalloc.start()
    try:
        with pytest.raises(TlsError, match="crlPath"):
            read_revoked(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
