"""Identifiers and secrets from the operating system's random numbers."""

from __future__ import annotations

import os
import uuid

from atalanta.kernel.ports import Ids


class SystemIds(Ids):
    """The Ids port: node ids, user ids of messages, salts."""

    def __init__(self) -> None:
        # A random host number with the multicast bit, as RFC 4122 §4.5 requires for a number that is not a network
        # card's. Two nodes on one machine must not share the host part of time-based ids.
        self._host = int.from_bytes(os.urandom(6), "big") | (1 << 40)

    def uuid(self) -> bytes:
        """Returns 16 bytes of a version-1 (time-based) UUID, like Artemis' own node ids."""
        # With a sequence of our own: that of uuid1 imports `random`.
        sequence = int.from_bytes(os.urandom(2), "big") & 0x3FFF
        return uuid.uuid1(self._host, sequence).bytes

    def secret(self, size: int) -> bytes:
        """Returns `size` random bytes."""
        return os.urandom(size)
