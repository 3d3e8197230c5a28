"""Heart-beats: what both sides promise at the login, and those that the node owes.

Follows AbstractStompProtocolHandler and HeartBeater of Artemis, but for a client that promises nothing: it has a time
to live only if the operator has set one.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from atalanta.wire.stomp.acceptor import StompAcceptor
from atalanta.wire.stomp.periods import periods

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers, Wire
    from atalanta.wire.endpoint import AcceptorConfig

OWN_PERIOD_MS_MIN: Final = 500
BEAT_TIMER: Final = "wire.stomp"
ENDED_MAX: Final = 100


class HeartBeat:
    """The agreement with one client, in ms. `own_period_ms` 0: the node sends none; `ttl_ms` -1: silence is no end.

    `wished_ms` is what CONNECTED asks of the client.
    """

    def __init__(
        self, header: str | None, override_ttl_ms: int, acceptor: AcceptorConfig | None
    ) -> None:
        self.ttl_ms: int = override_ttl_ms
        modifier = 2.0
        shortest_ms = 0
        longest_ms: int | None = None
        if acceptor is not None:
            options = acceptor.options(StompAcceptor)
            if header is None:
                header = options.default_heart_beat
            modifier = options.ttl_modifier
            shortest_ms = acceptor.connection_ttl_min_ms
            longest_ms = acceptor.connection_ttl_max_ms
            if acceptor.connection_ttl_ms >= 0:
                self.ttl_ms = acceptor.connection_ttl_ms
        promised_ms, wanted_ms = periods(header)
        self.own_period_ms: int = max(wanted_ms, OWN_PERIOD_MS_MIN) if wanted_ms else 0
        self.wished_ms: int = int(self.ttl_ms / modifier) if self.ttl_ms > 0 else 0
        if promised_ms:
            self.ttl_ms = max(int(promised_ms * modifier), shortest_ms)
            if longest_ms is not None:
                self.ttl_ms = min(self.ttl_ms, longest_ms)
            limited = self.ttl_ms != int(promised_ms * modifier)
            self.wished_ms = int(self.ttl_ms / modifier) if limited else promised_ms


class Beat:
    """The heart-beats that the node owes to one connection: `data`. `last_written`: time (ns) of its latest output."""

    def __init__(self, wire: Wire, conn: int, now: int, period_ns: int, data: bytes) -> None:
        self.data = data
        self.wire = wire
        self.conn = conn
        self.period_ns = period_ns
        self.last_written: int = now
        self.held: bool = False
        self.ended: bool = False

    def hold(self, held: bool) -> None:
        """Stops the heart-beats inside a frame that is written in pieces, or lets them go on."""
        self.held = held

    def written(self, now: int) -> None:
        """Records other output, which counts as a heart-beat."""
        self.last_written = now

    def end(self) -> None:
        """Records that the connection is closed."""
        self.ended = True

    def next_at(self, now: int) -> int:
        """Writes a heart-beat if it is due, and returns the time (ns) of the next one."""
        if self.last_written + self.period_ns <= now:
            if not self.held:
                self.wire.write(self.conn, self.data)
            self.last_written = now
        return self.last_written + self.period_ns


class HeartBeats:
    """The heart-beats that a node owes, by one timer. `due`: time (ns), number of the entry, connection.

    Entries of closed connections (`ended`) may be due in days: they are removed when they are the greater part.
    """

    def __init__(self, timers: Timers) -> None:
        self.ended: int = 0
        self.timers = timers
        self.due: list[tuple[int, int, Beat]] = []
        self.number: int = 0

    def add(self, now: int, beat: Beat) -> None:
        """Begins the heart-beats of a connection."""
        self._push(now + beat.period_ns, beat)
        self._arm()

    def remove(self, beat: Beat) -> None:
        """Ends the heart-beats of a connection."""
        beat.end()
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
            self.timers.set(BEAT_TIMER, self.due[0][0])
