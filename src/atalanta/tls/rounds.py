"""How many rounds of key derivation a store asks for, before OpenSSL makes them: the count is up to whoever wrote it.

Walks the plain part of PKCS12 (RFC 7292) and PKCS8 (RFC 5958), as DER or BER: the MAC's count, those of PBES1, PKCS12's
own and PBES2 with PBKDF2 (RFC 8018), and of scrypt (RFC 7914) N * r * p. What lies within encrypted contents counts
for nobody who has not the password. Java refuses counts above 5,000,000 (PKCS12KeyStore.MAX_ITERATION_COUNT).
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

DEPTH_MAX: Final = 64
ELEMENTS_MAX: Final = 1_000_000
STRINGS_WITHIN: Final = 2  # authenticated safe and safe contents; below are certificates

INTEGER: Final = 0x02
STRING: Final = 0x04
OBJECT: Final = 0x06
CONSTRUCTED: Final = 0x20
STRINGS: Final = STRING | CONSTRUCTED
SEQUENCE: Final = 0x30
INDEFINITE: Final = 0x80
# What a sequence holds: PFX' MacData or parameters of a derivation, each salt before count; of scrypt three numbers.
OTHER: Final = 0
COUNTED: Final = 1
SCRYPT: Final = 2
DERIVATIONS: Final = (
    (bytes.fromhex("2a864886f70d0105"), COUNTED),  # pkcs-5
    (bytes.fromhex("2a864886f70d010c01"), COUNTED),  # pkcs-12PbeIds
    (bytes.fromhex("2b06010401da47040b"), SCRYPT),
)
SEALED_PEM: Final = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
PEM_END: Final = b"-----END"


class Malformed(ValueError):
    """No BER from here on; what came before is counted."""


def rounds_of(data: bytes) -> int:
    """Of all derivations together. ValueError for what is nested too deeply, or has too many elements."""
    walk = Walk()
    walk.string(data, 0)
    return walk.rounds


def rounds_of_pem(data: bytes) -> int:
    """As `rounds_of`, of the encrypted keys in it."""
    total = 0
    for found in data.split(SEALED_PEM)[1:]:
        text = found.partition(PEM_END)[0]
        text = text[text.rfind(b":") + 1 :].partition(b"\n")[2]  # behind headers
        try:
            total += rounds_of(base64.b64decode(text))
        except binascii.Error:
            continue  # no key to anybody
    return total


class Walk:
    def __init__(self) -> None:
        self.rounds = 0
        self.elements = 0

    def string(self, data: bytes, strings: int) -> None:
        """`strings`: how many octet strings this is in."""
        try:
            self._elements(data, 0, len(data), 0, OTHER, strings)
        except Malformed:
            return  # encrypted, or no store at all: OpenSSL reads as far

    def _elements(
        self, data: bytes, at: int, end: int, depth: int, kind: int, strings: int
    ) -> int:
        """Those up to `end`, or to the mark behind one of indefinite length; where they end."""
        if depth > DEPTH_MAX:
            raise ValueError("elements are nested too deeply")
        salted = False
        numbers: list[int] = []
        follows = OTHER
        while at < end:
            tag, at, stop = self._header(data, at, end)
            if tag == 0 and stop == at:
                return at
            if tag in (STRING, STRINGS):
                salted = True
                pieces: list[bytes] = []
                at = self._pieces(data, tag, at, stop, end, depth, pieces)
                if strings < STRINGS_WITHIN:
                    self.string(b"".join(pieces), strings + 1)
            elif tag & CONSTRUCTED:
                within = OTHER
                if tag == SEQUENCE:
                    within = COUNTED if depth == 1 and strings == 0 else follows
                    follows = OTHER
                inner = end if stop < 0 else stop
                behind = self._elements(data, at, inner, depth + 1, within, strings)
                at = behind if stop < 0 else stop
            else:
                if tag == OBJECT:
                    follows = _derivation(data[at:stop])
                elif tag == INTEGER and salted and kind != OTHER:
                    numbers.append(_number(data[at:stop]))
                    self._count(kind, numbers)
                at = stop
        return at

    def _pieces(
        self, data: bytes, tag: int, at: int, stop: int, end: int, depth: int, found: list[bytes]
    ) -> int:
        """What an octet string holds, which may be written in pieces; where it ends."""
        if not tag & CONSTRUCTED:
            found.append(data[at:stop])
            return stop
        if depth > DEPTH_MAX:
            raise ValueError("elements are nested too deeply")
        inner = end if stop < 0 else stop
        while at < inner:
            part, at, behind = self._header(data, at, inner)
            if part == 0 and behind == at:
                break
            at = self._pieces(data, part, at, behind, inner, depth + 1, found)
        return at if stop < 0 else stop

    def _header(self, data: bytes, at: int, end: int) -> tuple[int, int, int]:
        """Tag, begin and end of the contents; -1 for an end that a mark will show."""
        self.elements += 1
        if self.elements > ELEMENTS_MAX:
            raise ValueError(f"it has more than {ELEMENTS_MAX} elements")
        return _header(data, at, end)

    def _count(self, kind: int, numbers: list[int]) -> None:
        if kind == COUNTED and len(numbers) == 1:
            self.rounds += numbers[0]
        elif kind == SCRYPT and len(numbers) == 3:
            self.rounds += numbers[0] * numbers[1] * numbers[2]


def _header(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    tag = data[at]
    at += 1
    if tag & 0x1F == 0x1F:
        while at < end and data[at] & 0x80:
            at += 1
        at += 1
    if at >= end:
        raise Malformed
    size = data[at]
    at += 1
    if size == INDEFINITE and tag & CONSTRUCTED:
        return tag, at, -1
    if size >= INDEFINITE:
        count = size & 0x7F  # OpenSSL takes any number of zeros before
        if not 0 < count <= end - at:
            raise Malformed
        size = int.from_bytes(data[at : at + count], "big")
        at += count
    if size > end - at:
        raise Malformed
    return tag, at, at + size


def _derivation(name: bytes) -> int:
    for prefix, kind in DERIVATIONS:
        if name.startswith(prefix):
            return kind
    return OTHER


def _number(data: bytes) -> int:
    """Negative ones count nothing: OpenSSL takes them for 1, or refuses them."""
    return max(0, int.from_bytes(data[:16], "big", signed=True)) if len(data) <= 16 else 1 << 127
