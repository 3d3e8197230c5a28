"""Packets that were sent on a session's channel and are not confirmed yet: sent again after a lost socket."""

from __future__ import annotations

from collections import deque
from typing import Final

from librt.strings import read_i32_be
from mypy_extensions import i64

# The limit exceeds the unconfirmed bytes of a correct client with this window, up to the maximum.
WINDOWS: Final = 4
SPARE_BYTES: Final = 1 << 20
REPLAY_BYTES_MAX: Final = 64 << 20


class Run:
    """A run of `count` whole frames in written bytes: `data[start:end]`."""

    def __init__(self, data: bytes, start: i64, end: i64, count: i64) -> None:
        self.data = data
        self.start: i64 = start
        self.end: i64 = end
        self.count: i64 = count


class Replay:
    """The frames in order; `first` is the number of the oldest one kept, counted from 0.

    `name` is the client's own name for its session. It opens the session to REATTACH_SESSION, and is never shown.

    The size is bounded: the oldest frames are dropped, and then only a client that has received them can reattach.
    """

    def __init__(self, name: str, window_bytes: int) -> None:
        self.name = name
        self.limit_bytes: i64 = min(window_bytes * WINDOWS + SPARE_BYTES, REPLAY_BYTES_MAX)
        self.first: i64 = 0
        self.count: i64 = 0
        self.bytes: i64 = 0
        self._runs: deque[Run] = deque()

    def sent(self, data: bytes, start: i64, end: i64, count: i64) -> None:
        """Adds `count` written frames, data[start:end], all of numbered packet types (packet_types.NOT_COUNTED)."""
        size = end - start
        if size * 2 < len(data):
            # A copy: `data` would keep the frames of other sessions in memory.
            self._runs.append(Run(data[start:end], 0, size, count))
        else:
            self._runs.append(Run(data, start, end, count))
        self.count += count
        self.bytes += size
        while self.bytes > self.limit_bytes:
            self._forget(1)

    def confirmed(self, number: int) -> None:
        """Drops the frames up to this number: the peer has them."""
        last: i64 = number
        while self.count > 0 and self.first <= last:
            self._forget(last - self.first + 1)

    def _forget(self, most: i64) -> None:
        """Drops the oldest frames of the first run, at most `most`."""
        run = self._runs[0]
        if run.count <= most:
            self._runs.popleft()
            self.bytes -= run.end - run.start
            self.first += run.count
            self.count -= run.count
            return
        position = run.start
        for _ in range(most):
            position += i64(read_i32_be(run.data, position)) + 4
        self.bytes -= position - run.start
        run.start = position
        run.count -= most
        self.first += most
        self.count -= most

    def unconfirmed(self) -> bytes:
        """Returns all kept frames as they were written."""
        return b"".join([run.data[run.start : run.end] for run in self._runs])

    def covers(self, number: int) -> bool:
        """Returns True if the buffer has all frames behind this number."""
        last: i64 = number
        return self.first - 1 <= last < self.first + self.count
