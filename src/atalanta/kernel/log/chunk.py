"""The result of one read of a log view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

if TYPE_CHECKING:
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.selector.selector import Filter

READ_BYTES_MAX: Final = 4 << 20
LOOK_BYTES_MAX: Final = 2 * READ_BYTES_MAX  # of the messages of one read, with the bodies that are not sent
READ_LOOKS_MAX: Final = 20_000  # messages that one read examines, however few of them its selector takes


class LogChunk:
    """Messages of one read; `next`: start of the next read; `last`: the range is exhausted.

    `large`: the only message is larger than a chunk, and its body is read in pieces. `bodies`: false if the reader asks
    for the messages without their bodies.
    """

    def __init__(self, end: int, limit: int, selector: Filter | None, bodies: bool) -> None:
        """The read ends with the sequence `end`, or when the messages have `limit` bytes; at least one is taken."""
        self.bodies = bodies
        self.references: list[Reference] = []
        self.last: bool = True
        self.large: bool = False
        self._end: i64 = end
        self._limit: i64 = limit
        self._selector = selector
        self._examined: i64 = end
        self._looks: int = 0
        self._size: i64 = 0
        self._whole_size: i64 = 0  # with the bodies that are not sent

    @property
    def next(self) -> int:
        return int(self._end if self.last else self._examined)

    def fill(self, found: list[Reference]) -> bool:
        """Takes the next messages of the queue, in order. Returns whether those behind them are wanted, too."""
        selector = self._selector
        end = self._end
        for reference in found:
            if i64(reference.sequence) > end:
                return False
            if not reference.durable:
                continue
            if selector is not None:
                if self._looks >= READ_LOOKS_MAX:
                    self.last = False
                    return False
                self._looks += selector.cost
                if not selector.matches(reference.message):
                    self._examined = i64(reference.sequence)
                    continue
            if not self._take(reference):
                return False
        return True

    def _take(self, reference: Reference) -> bool:
        """Takes a message if it fits. Returns whether there may be room for another one."""
        size: i64 = reference.size
        cost: i64 = cost_of(reference) if self.bodies else size - len(reference.message.body)
        self._size += cost
        self._whole_size += size
        full = self._size > self._limit or self._whole_size > LOOK_BYTES_MAX or cost > READ_BYTES_MAX
        if full and self.references:
            self.last = False
            return False
        self.references.append(reference)
        self._examined = i64(reference.sequence)
        if cost > READ_BYTES_MAX:
            self.large = True
            self.last = i64(reference.sequence) == self._end
            return False
        return True


def cost_of(reference: Reference) -> int:
    """Returns the bytes of a message, the file of a large one included."""
    large = reference.message.large
    return reference.size if large is None else reference.size + large.size
