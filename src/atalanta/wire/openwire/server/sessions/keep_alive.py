"""The signs of life that the node owes to its OpenWire clients (InactivityMonitor of activemq-client).

A client closes a connection that was silent for the agreed time. The node writes at the latest after a third of it.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers, Wire

KEEP_ALIVE_TIMER: Final = "wire.openwire.alive"
PARTS: Final = 3
PERIOD_NS_MIN: Final = 50_000_000  # however impatient a client says it is: it may have many connections


class KeepAlive:
    """The signs of life of one connection: `frame` after `period_ns` without other output."""

    def __init__(self, wire: Wire, conn: int, now: int, period_ns: int, frame: bytes) -> None:
        self.wire = wire
        self.conn = conn
        self.period_ns = period_ns
        self.frame = frame
        self.last_written: int = now
        self.ended: bool = False

    def written(self, now: int) -> None:
        """Records other output."""
        self.last_written = now

    def end(self) -> None:
        """Records that the connection is closed."""
        self.ended = True

    def next_at(self, now: int) -> int:
        """Writes the frame if it is due, and returns the time (ns) of the next one."""
        if self.last_written + self.period_ns <= now:
            self.wire.write(self.conn, self.frame)
            self.last_written = now
        return self.last_written + self.period_ns


class KeepAlives:
    """The signs of life of a node, by one timer. `due`: time (ns), number of the entry, connection."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.due: list[tuple[int, int, KeepAlive]] = []
        self.number: int = 0

    def add(self, now: int, keep_alive: KeepAlive) -> None:
        """Begins the signs of life of a connection."""
        self._push(now + keep_alive.period_ns, keep_alive)
        self._arm()

    def _push(self, at: int, keep_alive: KeepAlive) -> None:
        self.number += 1
        heapq.heappush(self.due, (at, self.number, keep_alive))

    def on_timer(self, now: int) -> None:
        """Writes what is due."""
        while self.due and self.due[0][0] <= now:
            keep_alive = heapq.heappop(self.due)[2]
            if not keep_alive.ended:
                self._push(keep_alive.next_at(now), keep_alive)
        self._arm()

    def _arm(self) -> None:
        if self.due:
            self.timers.set(KEEP_ALIVE_TIMER, self.due[0][0])
