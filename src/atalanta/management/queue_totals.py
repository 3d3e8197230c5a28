"""Queue figures without a counter of their own: they are summed when metrics are requested.

Every reference in memory is read once, in slices. Messages in page files count as durable without being read, like
in Artemis (QueueImpl.getDurableMessageCount counts the messages of its page subscription).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.reference import DELIVERING, READY

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue

END: Final = 1 << 62  # after every sequence
REFERENCES_MAX: Final = 10_000  # per slice: references, and queues without any


class Tally:
    """The figures of one queue. Sizes are in bytes."""

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

    def add(self, queue: Queue, sequence: int, most: int) -> int:
        """Counts up to `most` references from `sequence` on. Returns the sequence to continue with, or END."""
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
    """Appends a Tally of each queue to `found`, in this order. Changes in the meantime may be missing."""
    left = REFERENCES_MAX
    for queue in queues:
        figures = Tally(queue)
        found.append(figures)
        sequence = 0 if queue.durable or queue.delivering_count > 0 else END
        left -= 1
        while sequence != END:
            if left <= 0:
                left = REFERENCES_MAX
                yield
            most = min(left, len(queue.references))
            sequence = figures.add(queue, sequence, most)
            left -= most
