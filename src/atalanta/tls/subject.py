"""The subject of a certificate in Java's notation, which Artemis' user files have."""

from __future__ import annotations

from typing import Final

from cryptography import x509

# Names of X500Name.toString (sun.security.x509.AVAKeyword); other attributes are written as OID.
KEYWORDS: Final = {
    "2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.10": "O", "2.5.4.11": "OU",
    "2.5.4.12": "T", "2.5.4.9": "STREET", "0.9.2342.19200300.100.1.25": "DC", "2.5.4.46": "DNQ",
    "2.5.4.4": "SURNAME", "2.5.4.42": "GIVENNAME", "2.5.4.43": "INITIALS", "2.5.4.44": "GENERATION",
    "1.2.840.113549.1.9.1": "EMAILADDRESS", "0.9.2342.19200300.100.1.1": "UID", "2.5.4.5": "SERIALNUMBER",
}  # fmt: skip
QUOTED: Final = ',+=\n<>#;\\"'


def subject_of(der: bytes) -> str:
    """Returns "CN=client, OU=accounts, O=Example": the most specific part first. ValueError for an invalid
    certificate."""
    name = x509.load_der_x509_certificate(der).subject
    return ", ".join(" + ".join(map(_attribute, part)) for part in reversed(name.rdns))


def _attribute(attribute: x509.NameAttribute[str | bytes]) -> str:
    oid = attribute.oid.dotted_string
    value = attribute.value
    text = "#" + value.hex() if isinstance(value, bytes) else _quoted(value)
    return f"{KEYWORDS.get(oid, 'OID.' + oid)}={text}"


def _quoted(value: str) -> str:
    """Quotes a value that would be ambiguous (AVA.toRFC1779StringInternal)."""
    plain = value and value == value.strip() and "  " not in value
    if plain and not any(character in QUOTED for character in value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
