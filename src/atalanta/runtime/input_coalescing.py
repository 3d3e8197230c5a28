"""When the node lets input pile up for a moment, as network cards do: streams that come in faster than it is worth.

Messages sent without waiting, and their acknowledgements, come in many small packets. A node that is faster than its
clients wakes up for each of them, and the turn (waking up, a read, the flush) costs several times what the message
does: with four JMS producers and consumers 8,000 turns a second of ten messages each, and more than half of the CPU.

Nobody waits for such a turn, and that shows: it writes nothing. So after a row of turns, one close behind the other,
that hardly ever wrote anything, the loop sleeps a little before it looks again. Any answer or delivery makes that
rarer and shorter: with four silent turns or fewer to one that writes, as with requests, blocking senders and
consumers that keep up, there is no pause at all.
"""

from __future__ import annotations

from typing import Final

# So many silent turns, less those that were taken back, before the first pause; what is counted at most.
ROW_MIN: Final = 8
ROW_MAX: Final = 32
# A pause, and the next while nothing is written: each twice as long, up to the last. Senders whose credit is short
# ask for more, the answer is something written, and so their pauses stay short.
PAUSE_FIRST_NS: Final = 100_000
PAUSE_MAX_NS: Final = 400_000
# Turns that end further apart than this have enough to do, or too little to be worth it.
CLOSE_NS: Final = 500_000


class InputCoalescing:
    """Told of the end of each turn."""

    def __init__(self) -> None:
        self._row = 0
        self._next_ns = PAUSE_FIRST_NS
        # When the next turn would come at the soonest.
        self._ready = 0

    def turn_ended(self, now: int, awaited: bool) -> int:
        """How long the loop should sleep, in ns. `awaited`: something was written, or is to come of this turn."""
        late = now - self._ready > CLOSE_NS
        self._ready = now
        if awaited or late:
            self._row //= 2
            self._next_ns = PAUSE_FIRST_NS
            return 0
        if self._row < ROW_MAX:
            self._row += 1
        if self._row < ROW_MIN:
            return 0
        pause_ns = self._next_ns
        self._next_ns = min(2 * pause_ns, PAUSE_MAX_NS)
        self._ready = now + pause_ns
        return pause_ns
