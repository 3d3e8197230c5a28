"""Subjects of certificates read as Java writes them (compared with X500Name of Java 17)."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from atalanta.tls.subject import subject_of
from tests.certificates import END, START

NAMES = [
    (
        [
            (NameOID.COUNTRY_NAME, "DE"), (NameOID.STATE_OR_PROVINCE_NAME, "Bavaria"),
            (NameOID.LOCALITY_NAME, "Munich"), (NameOID.ORGANIZATION_NAME, "Example, Inc."),
            (NameOID.ORGANIZATIONAL_UNIT_NAME, "a"),
        ],
        'OU=a, O="Example, Inc.", L=Munich, ST=Bavaria, C=DE',
    ),
    (
        [
            (NameOID.DOMAIN_COMPONENT, "org"), (NameOID.DOMAIN_COMPONENT, "example"),
            (NameOID.COMMON_NAME, "x  y"), (NameOID.EMAIL_ADDRESS, "a@b.c"),
            (NameOID.SERIAL_NUMBER, "5"), (NameOID.USER_ID, "u7"),
        ],
        'UID=u7, SERIALNUMBER=5, EMAILADDRESS=a@b.c, CN="x  y", DC=example, DC=org',
    ),
    (
        [
            (NameOID.COMMON_NAME, 'Jörg "J" M\\ü'), (NameOID.TITLE, "Dr"), (NameOID.GIVEN_NAME, "J"),
            (NameOID.SURNAME, "M"), (NameOID.POSTAL_CODE, "12345"),
        ],
        'OID.2.5.4.17=12345, SURNAME=M, GIVENNAME=J, T=Dr, CN="Jörg \\"J\\" M\\\\ü"',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "text"), NAMES, ids=["usual", "components", "odd"])
def test_as_java_writes_it(parts: list[tuple[x509.ObjectIdentifier, str]], text: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
    builder = builder.public_key(key.public_key()).not_valid_before(START).not_valid_after(END)
    made = builder.sign(key, hashes.SHA256())
    assert subject_of(made.public_bytes(serialization.Encoding.DER)) == text


def test_what_is_no_certificate() -> None:
    with pytest.raises(ValueError):
        subject_of(b"\x30\x03abc")
