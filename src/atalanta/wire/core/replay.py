"""What was sent on a session's channel and is not confirmed yet: sent again after a lost socket (fact sheet A1.c)."""

from __future__ import annotations

from collections import deque
from typing import Final

from atalanta.wire.core.types import NOT_COUNTED

# More than a client with this window can leave unconfirmed in good order, but never more than the maximum.
WINDOWS: Final = 4
SPARE_BYTES: Final = 1 << 20
REPLAY_BYTES_MAX: Final = 64 << 20


class Replay:
    """Whole frames in order; `first` is the number of the oldest one kept, counted from 0.

    Bounded: the oldest are forgotten, and then only a client that has them can go on.
    """

    def __init__(self, window_bytes: int) -> None:
        self.limit_bytes: int = min(window_bytes * WINDOWS + SPARE_BYTES, REPLAY_BYTES_MAX)
        self.frames: deque[bytes] = deque()
        self.first: int = 0
        self.bytes: int = 0

    def sent(self, packet_type: int, frame: bytes) -> None:
        if packet_type in NOT_COUNTED:
            return
        self.frames.append(frame)
        self.bytes += len(frame)
        while self.bytes > self.limit_bytes:
            self._forget()

    def confirmed(self, number: int) -> None:
        """The peer has everything up to this one."""
        while self.frames and self.first <= number:
            self._forget()

    def _forget(self) -> None:
        self.bytes -= len(self.frames.popleft())
        self.first += 1

    def covers(self, number: int) -> bool:
        """Whether a peer that has everything up to this one can be sent all the rest."""
        return self.first - 1 <= number < self.first + len(self.frames)
