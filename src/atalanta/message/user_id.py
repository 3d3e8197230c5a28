"""The 16 bytes of a message's user id, which are JMSMessageID of CORE's clients.

Artemis' Java client takes any bytes, but writes version 1 and the variant of RFC 9562 into them (utils.UUID). So bytes
that are made of something else have both from the beginning, and every client sees the same id.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 1 << 76
VERSION_MASK: Final = 0xF << 76
VARIANT: Final = 2 << 62
VARIANT_MASK: Final = 3 << 62


def as_uuid(value: int) -> bytes:
    """Returns 128 bits as a UUID: 6 of them, those of version and variant, are lost."""
    return (value & ~(VERSION_MASK | VARIANT_MASK) | VERSION | VARIANT).to_bytes(16, "big")


def hashed_uuid(digest: bytes) -> bytes:
    """Returns the begin of a digest as a UUID."""
    return as_uuid(int.from_bytes(digest[:16], "big"))
