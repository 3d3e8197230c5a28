"""The result of one read of a log view."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.queue.reference import Reference


class Chunk:
    """Messages of one read; `next`: start of the next read; `last`: the range is exhausted.

    `large`: the only message is larger than a chunk, and its body is read in pieces. `bodies`: false if the reader asks
    for the messages without their bodies.
    """

    def __init__(self, bodies: bool) -> None:
        self.bodies = bodies
        self.references: list[Reference] = []
        self.next: int = 0
        self.last: bool = False
        self.large: bool = False

    def cost_of(self, reference: Reference) -> int:
        """Returns the bytes of a message in this chunk."""
        return cost_of(reference) if self.bodies else reference.size - len(reference.message.body)


def cost_of(reference: Reference) -> int:
    """Returns the bytes of a message, the file of a large one included."""
    large = reference.message.large
    return reference.size if large is None else reference.size + large.size
