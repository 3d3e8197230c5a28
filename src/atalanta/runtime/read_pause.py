"""Input coalescing: short pauses of the event loop while many small packets arrive, like interrupt coalescing of
network cards.

Messages sent without waiting, and their acknowledgements, arrive in many small packets. A node that is faster
than its clients wakes up for each of them. The event-loop iteration (wake-up, read, flush) then costs several
times as much as the message. Four JMS producers and consumers caused 8,000 iterations a second with ten messages
each, and more than half of the CPU.

No client waits for such an iteration, since it writes nothing. So after a series of close iterations that hardly
ever wrote, the loop sleeps a little before it reads again. Any answer or delivery makes pauses rarer and
shorter. There is no pause if at least one iteration in five writes, as with requests, blocking senders and
consumers that keep up.
"""

from __future__ import annotations

from typing import Final

# Number of silent iterations before the first pause, less those subtracted again; and the maximum of the counter.
ROW_MIN: Final = 8
ROW_MAX: Final = 32
# The first pause; each further one is twice as long, up to the maximum, while nothing is written. Senders with
# little credit ask for more. The answer is output, so their pauses stay short.
PAUSE_FIRST_NS: Final = 100_000
PAUSE_MAX_NS: Final = 400_000
# Iterations that end further apart than this are busy enough, or too rare for a pause.
CLOSE_NS: Final = 500_000


class ReadPause:
    """Decides about a pause at the end of each event-loop iteration."""

    def __init__(self) -> None:
        self._row = 0
        self._next_ns = PAUSE_FIRST_NS
        # The earliest time at which the next iteration could begin.
        self._ready = 0

    def turn_ended(self, now: int, awaited: bool) -> int:
        """Returns the pause of the loop in ns. `awaited`: the iteration wrote output, or will cause output."""
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
