"""Identifiers and secrets from the operating system's random numbers."""

from __future__ import annotations

import os
import struct
import time
from typing import Final

from atalanta.kernel.ports import Ids

# Of 100 ns, from the beginning of the Gregorian calendar to that of 1970 (RFC 4122 §4.1.4).
GREGORIAN_TICKS: Final = 0x01B21DD213814000
TIME_FIELDS: Final = struct.Struct(">IHH")


class SystemIds(Ids):
    """The Ids port: node ids, user ids of messages, salts."""

    def __init__(self) -> None:
        # A random host number with the multicast bit, as RFC 4122 §4.5 requires for a number that is not a network
        # card's. Two nodes on one machine must not share the host part of time-based ids.
        sequence = int.from_bytes(os.urandom(2), "big") & 0x3FFF | 0x8000
        host = int.from_bytes(os.urandom(6), "big") | (1 << 40)
        self._place = sequence.to_bytes(2, "big") + host.to_bytes(6, "big")
        self._ticks = 0

    def uuid(self) -> bytes:
        """Returns 16 bytes of a version-1 (time-based) UUID, like Artemis' own node ids. No two are equal, even if the
        clock goes back."""
        ticks = max(time.time_ns() // 100 + GREGORIAN_TICKS, self._ticks + 1)
        self._ticks = ticks
        high = ticks >> 48 & 0x0FFF | 0x1000
        return TIME_FIELDS.pack(ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, high) + self._place

    def secret(self, size: int) -> bytes:
        """Returns `size` random bytes."""
        return os.urandom(size)
