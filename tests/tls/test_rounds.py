"""A store decides how many rounds of key derivation it takes to open it: too many are refused before the first."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from atalanta.tls.errors import TlsError
from atalanta.tls.rounds import rounds_of, rounds_of_pem
from atalanta.tls.stores import read_key_store, read_trust_store
from tests.certificates import PASSWORD, PEM, Authority

MAC_ROUNDS = 2_048  # OpenSSL's
PBKDF2 = bytes.fromhex("2a864886f70d01050c")
PBES2 = bytes.fromhex("2a864886f70d01050d")
PKCS12_3DES = bytes.fromhex("2a864886f70d010c0103")
SCRYPT = bytes.fromhex("2b06010401da47040b")
DATA = bytes.fromhex("2a864886f70d010701")
SHA1 = bytes.fromhex("2b0e03021a")


def tlv(tag: int, *parts: bytes, indefinite: bool = False) -> bytes:
    content = b"".join(parts)
    if indefinite:
        return bytes([tag, 0x80]) + content + b"\0\0"
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    return bytes([tag, 0x84]) + size.to_bytes(4, "big") + content


def integer(value: int) -> bytes:
    return tlv(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def sequence(*parts: bytes) -> bytes:
    return tlv(0x30, *parts)


def algorithm(name: bytes, *parts: bytes) -> bytes:
    return sequence(tlv(6, name), *parts)


def derivation(name: bytes, *numbers: int) -> bytes:
    return algorithm(name, sequence(tlv(4, b"saltsalt"), *[integer(each) for each in numbers]))


def sealed_key(derived: bytes) -> bytes:
    """EncryptedPrivateKeyInfo."""
    return sequence(derived, tlv(4, bytes(32)))


def store(contents: bytes, mac_rounds: int, indefinite: bool = False, pieces: int = 0) -> bytes:
    """PFX around the contents of an authenticated safe."""
    safe = sequence(contents)
    string = tlv(4, safe)
    if pieces:
        string = tlv(0x24, *[tlv(4, safe[at : at + pieces]) for at in range(0, len(safe), pieces)])
        if indefinite:
            string = tlv(0x24, *[tlv(4, safe[at : at + pieces]) for at in range(0, len(safe), pieces)],
                         indefinite=True)  # fmt: skip
    info = tlv(0x30, tlv(6, DATA), tlv(0xA0, string, indefinite=indefinite), indefinite=indefinite)
    mac = sequence(sequence(algorithm(SHA1), tlv(4, bytes(20))), tlv(4, b"saltsalt"), integer(mac_rounds))
    return tlv(0x30, integer(3), info, mac, indefinite=indefinite)


def bag(derived: bytes) -> bytes:
    """A ContentInfo with one sealed key."""
    shrouded = bytes.fromhex("2a864886f70d010c0a0102")
    bags = sequence(sequence(tlv(6, shrouded), tlv(0xA0, sealed_key(derived))))
    return sequence(tlv(6, DATA), tlv(0xA0, tlv(4, bags)))


def pbes2(*numbers: int, kdf: bytes = PBKDF2) -> bytes:
    return algorithm(PBES2, sequence(derivation(kdf, *numbers), algorithm(SHA1)))


@pytest.mark.parametrize("kind", list(pkcs12.PBES))
def test_what_our_own_library_writes(tmp_path: Path, kind: pkcs12.PBES) -> None:
    authority = Authority()
    sealing = serialization.PrivateFormat.PKCS12.encryption_builder().kdf_rounds(3_000)
    data = pkcs12.serialize_key_and_certificates(
        b"a", authority.key, authority.certificate, None,
        sealing.key_cert_algorithm(kind).hmac_hash(hashes.SHA256()).build(b"secret"),
    )  # fmt: skip
    assert rounds_of(data) == 2 * 3_000 + MAC_ROUNDS
    path = tmp_path / "store.p12"
    path.write_bytes(data)
    assert read_key_store(path, "secret", "", "", b"x").key_pem
    sealed = authority.key.private_bytes(
        PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    )
    assert 1_000 < rounds_of_pem(sealed) < 1_000_000
    assert rounds_of_pem(sealed + sealed) == 2 * rounds_of_pem(sealed)


@pytest.mark.parametrize("indefinite", [False, True])
@pytest.mark.parametrize("pieces", [0, 7])
def test_every_count_in_plain_sight_counts(pieces: int, indefinite: bool) -> None:
    for derived, rounds in (
        (derivation(PKCS12_3DES, 70_000), 70_000),
        (pbes2(80_000), 80_000),
        (pbes2(80_000, 32), 80_000),  # with the key's length
        (pbes2(1 << 14, 8, 2, kdf=SCRYPT), 1 << 18),
        (pbes2((1 << 31) - 1), (1 << 31) - 1),
    ):
        found = rounds_of(store(bag(derived) + bag(derived), 90_000, indefinite, pieces))
        assert found == 2 * rounds + 90_000
        assert rounds_of(sealed_key(derived)) == rounds


@pytest.mark.parametrize("digits", [8, 65, 126])
def test_lengths_with_many_zeros_before_count_too(tmp_path: Path, digits: int) -> None:
    """OpenSSL reads them."""
    mac = sequence(sequence(algorithm(SHA1), tlv(4, bytes(20))), tlv(4, b"saltsalt"), integer(1 << 30))
    content = integer(3) + sequence(tlv(6, DATA)) + mac
    path = tmp_path / "store.p12"
    path.write_bytes(bytes([0x30, 0x80 | digits]) + len(content).to_bytes(digits, "big") + content)
    with pytest.raises(TlsError, match="asks for 1073741824 rounds"):
        read_key_store(path, "secret", "", "", b"x")


def test_what_is_no_count() -> None:
    """Negative ones, numbers of other structures; nothing is read of what does not fit into its own length."""
    assert rounds_of(store(sequence(derivation(DATA, 1 << 40)), 1)) == 1
    assert rounds_of(sealed_key(sequence(tlv(6, PBKDF2), sequence(tlv(4, b"s"), tlv(2, b"\xff"))))) == 0
    whole = store(bag(pbes2(500)), 700)
    assert rounds_of(whole + b"junk") == 1_200
    assert rounds_of(whole[:-3]) == 0
    for junk in (b"", b"\x30", b"\x30\x85", b"\x1f\xff", b"\x30\x80", b"\x24\x80\x24\x80", bytes(50)):
        assert rounds_of(junk) == 0


@pytest.mark.parametrize("where", ["mac", "key", "pem", "headers"])
def test_a_store_of_billions_of_rounds_is_refused_at_once(tmp_path: Path, where: str) -> None:
    rounds = (1 << 31) - 1
    data = store(bag(pbes2(2_048)), rounds) if where == "mac" else store(bag(pbes2(rounds)), 1)
    authority = Authority()
    if where in ("pem", "headers"):
        pem = authority.key.private_bytes(
            PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
        )
        data = with_rounds(pem, rounds, b"A: b\n\n" if where == "headers" else b"")
    path = tmp_path / "store"
    path.write_bytes(data)
    begin = time.thread_time()
    with pytest.raises(TlsError, match=r"keyStorePath: .*store asks for 214748\d+ rounds .* more than 10000000"):
        read_key_store(path, "secret", "", "", b"x")
    if where in ("mac", "key"):
        with pytest.raises(TlsError, match="trustStorePath: .*store asks for 214748"):
            read_trust_store(path, PASSWORD, "")
    assert time.thread_time() - begin < 1


def with_rounds(pem: bytes, rounds: int, headers: bytes) -> bytes:
    """A sealed key that asks for that many instead."""
    import base64

    head, middle, end = pem.partition(b"KEY-----\n")[0], sealed_key(pbes2(rounds)), b"-----END"
    text = base64.encodebytes(middle)
    return head + b"KEY-----\n" + headers + text + end + pem.partition(end)[2]


def test_what_is_made_to_take_long_or_deep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store"
    for data, says in (
        (b"\x30\x80" * 100_000, "nested too deeply"),
        (b"\x24\x80" * 100_000, "nested too deeply"),
        (tlv(0x30, b"\x05\x00" * 1_000_001), "more than 1000000 elements"),
    ):
        path.write_bytes(data)
        with pytest.raises(TlsError, match=f"keyStorePath: .*{says}"):
            read_key_store(path, "secret", "PKCS12", "", b"x")
