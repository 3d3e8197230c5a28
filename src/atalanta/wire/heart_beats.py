"""The heart-beats that a node owes to clients: bytes that it writes after a period without other output."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers, Wire

ENDED_MAX: Final = 100


class Beat:
    """The heart-beats of one connection: `data` after `period_ns` without other output.

    `last_written`: time (ns) of its latest output. `held`: it is inside a frame that is written in pieces.
    """

    def __init__(self, wire: Wire, conn: int, now: int, period_ns: int, data: bytes) -> None:
        self.data = data
        self.wire = wire
        self.conn = conn
        self.period_ns = period_ns
        self.last_written: int = now
        self.held: bool = False
        self.ended: bool = False

    def next_at(self, now: int) -> int:
        """Writes a heart-beat if it is due, and returns the time (ns) of the next one."""
        if self.last_written + self.period_ns <= now:
            if not self.held:
                self.wire.write(self.conn, self.data)
            self.last_written = now
        return self.last_written + self.period_ns


class HeartBeats:
    """The heart-beats of a protocol, by the timer `key`. `due`: time (ns), number of the entry, connection.

    Entries of closed connections (`ended`) may be due in days: they are removed when they are the greater part.
    """

    def __init__(self, timers: Timers, key: str) -> None:
        self.timers = timers
        self.key = key
        self.due: list[tuple[int, int, Beat]] = []
        self.ended: int = 0
        self.number: int = 0

    def add(self, now: int, beat: Beat) -> None:
        """Begins the heart-beats of a connection."""
        self._push(now + beat.period_ns, beat)
        self._arm()

    def remove(self, beat: Beat) -> None:
        """Ends the heart-beats of a connection."""
        beat.ended = True
        self.ended += 1
        if self.ended > ENDED_MAX and self.ended * 2 > len(self.due):
            self.due = [entry for entry in self.due if not entry[2].ended]
            heapq.heapify(self.due)
            self.ended = 0

    def _push(self, at: int, beat: Beat) -> None:
        self.number += 1
        heapq.heappush(self.due, (at, self.number, beat))

    def on_timer(self, now: int) -> None:
        """Writes what is due."""
        while self.due and self.due[0][0] <= now:
            beat = heapq.heappop(self.due)[2]
            if beat.ended:
                self.ended -= 1
            else:
                self._push(beat.next_at(now), beat)
        self._arm()

    def _arm(self) -> None:
        if self.due:
            self.timers.set(self.key, self.due[0][0])
