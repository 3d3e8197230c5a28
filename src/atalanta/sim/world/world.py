"""Virtual time: a heap of calls, one random generator per subject, and a digest of every event."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable
from typing import Final

SECOND: Final = 1_000_000_000
EPOCH: Final = 1_700_000_000 * SECOND  # the clock of every run starts here
HISTORY_LINES_MAX: Final = 200_000


def drawn(generator: random.Random, low: int, high: int) -> int:
    """Returns `generator.randint(low, high)`, in a third of its time."""
    count = high - low + 1
    bits = count.bit_length()
    found = generator.getrandbits(bits)
    while found >= count:
        found = generator.getrandbits(bits)
    return low + found


class Line:
    """A line of a history; `key` names its message, "" for other events."""

    def __init__(self, when: int, key: str, text: str) -> None:
        self.when = when
        self.key = key
        self.text = text

    def __str__(self) -> str:
        return f"{(self.when - EPOCH) / SECOND:12.6f}  {self.text}"


class World:
    """The simulated world. Time is in integer nanoseconds: with float time two chunks of one stream can change places.

    `telling` also records events of single messages (of the message `about` only, if it is not ""). This has no other
    effect: the digest and every draw are the same, so that a failed seed can run again with it.
    """

    def __init__(self, seed: int, telling: bool = False, about: str = "") -> None:
        self.seed = seed
        self.telling = telling
        self.about = about
        self.now: int = EPOCH
        self.steps: int = 0
        self._order: int = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._generators: dict[str, random.Random] = {}
        self._digest = hashlib.sha256()
        self.history: list[Line] = []

    def random(self, subject: str) -> random.Random:
        """Returns the generator of a subject, so that one more draw in it does not change the others."""
        known = self._generators.get(subject)
        if known is None:
            known = random.Random(f"{self.seed}/{subject}")
            self._generators[subject] = known
        return known

    def at(self, delay_ns: int, call: Callable[[], None]) -> None:
        now = self.now
        self._order += 1
        heapq.heappush(self._heap, (now + delay_ns if delay_ns > 0 else now, self._order, call))

    def at_time(self, when: int, call: Callable[[], None]) -> None:
        now = self.now
        self._order += 1
        heapq.heappush(self._heap, (when if when > now else now, self._order, call))

    def step(self) -> bool:
        """Runs the next call. Returns False if none is left."""
        if not self._heap:
            return False
        when, _, call = heapq.heappop(self._heap)
        self.now = when
        self.steps += 1
        call()
        return True

    def run_until(self, until: int) -> None:
        """Runs all calls up to that time; `step` written out, because most of a run is this loop."""
        heap = self._heap
        pop = heapq.heappop
        while heap and heap[0][0] <= until:
            when, _, call = pop(heap)
            self.now = when
            self.steps += 1
            call()
        self.now = max(self.now, until)

    def note(self, line: str) -> None:
        """Adds a line to digest and history. `line` must be the same in every run of the seed."""
        self._digest.update(f"{self.now} {line}\n".encode("utf-8", "surrogatepass"))
        self._remember(Line(self.now, "", line))

    def tell(self, key: str, line: str) -> None:
        """Adds a line to one message's history; check `telling` before the line is built."""
        if not self.about or key == self.about:
            self._remember(Line(self.now, key, line))

    def _remember(self, line: Line) -> None:
        self.history.append(line)
        if len(self.history) > HISTORY_LINES_MAX:
            del self.history[: HISTORY_LINES_MAX // 2]

    def digest(self) -> str:
        return self._digest.hexdigest()

    def seconds(self) -> float:
        return (self.now - EPOCH) / SECOND
