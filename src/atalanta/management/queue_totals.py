"""Those figures of queues that no counter on a message's way keeps: they are added up when somebody asks for metrics.

Every reference in memory is looked at once, in slices. What lies in page files counts as durable without being read,
as in Artemis (QueueImpl.getDurableMessageCount counts what its page subscription has).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.reference import DELIVERING, READY

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue

END: Final = 1 << 62  # behind every sequence
LOOKS_MAX: Final = 10_000  # a slice: references, and queues looked at without any


class Tally:
    """Of one queue. Sizes are in bytes."""

    def __init__(self, queue: Queue) -> None:
        self.durable_count: int = 0
        self.durable_bytes: int = 0
        self.delivering_bytes: int = 0
        self.delivering_durable_count: int = 0
        self.delivering_durable_bytes: int = 0
        if queue.durable:
            self.durable_count = queue.scheduled_durable_count
            self.durable_bytes = queue.scheduled_durable_bytes
            if queue.paged is not None:
                self.durable_count += queue.paged.count
                self.durable_bytes += queue.paged.bytes

    def look(self, queue: Queue, sequence: int, most: int) -> int:
        """At up to `most` references from `sequence` on; where to go on, or END."""
        references = queue.references
        index = queue.index_of(sequence)
        stop = min(len(references), index + most)
        for reference in references[index:stop]:
            state = reference.state
            if state == DELIVERING:
                self.delivering_bytes += reference.size
                if reference.durable:
                    self.delivering_durable_count += 1
                    self.delivering_durable_bytes += reference.size
            elif state != READY:
                continue
            if reference.durable:
                self.durable_count += 1
                self.durable_bytes += reference.size
        return references[stop - 1].sequence + 1 if stop < len(references) else END


def tally(queues: list[Queue], found: list[Tally]) -> Iterator[None]:
    """A Tally of each, in this order, into `found`. What comes and goes meanwhile may or may not be seen."""
    left = LOOKS_MAX
    for queue in queues:
        figures = Tally(queue)
        found.append(figures)
        sequence = 0 if queue.durable or queue.delivering_count > 0 else END
        left -= 1
        while sequence != END:
            if left <= 0:
                left = LOOKS_MAX
                yield
            looks = min(left, len(queue.references))
            sequence = figures.look(queue, sequence, looks)
            left -= looks
