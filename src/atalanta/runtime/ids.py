"""Identifiers and secrets, from the operating system's randomness."""

from __future__ import annotations

import secrets
import uuid

from atalanta.kernel.ports import Ids


class SystemIds(Ids):
    """The Ids port: node ids, user ids of messages, salts."""

    def __init__(self) -> None:
        # A random host number with the multicast bit, as RFC 4122 §4.5 wants it of one that is no
        # network card's: two nodes of one machine must not share the time-based ids' host part.
        self._host = secrets.randbits(48) | (1 << 40)

    def uuid(self) -> bytes:
        """16 bytes, version 1: time-based, as Artemis' own node ids are."""
        return uuid.uuid1(node=self._host).bytes

    def secret(self, size: int) -> bytes:
        """`size` random bytes."""
        return secrets.token_bytes(size)
