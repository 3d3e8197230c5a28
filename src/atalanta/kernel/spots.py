"""The place of a message that comes to a queue when others which arrived after it are there (returning.py).

Two orders count. Messages ascend as they came to this node (`place_of`). One that comes late from another node has a
place among those of its link as well, which ascend as they came to the sender. It goes in front of the first message
that is behind it in either; so it may lie in front of lower ids of this node, and then says so (`Reference.placed`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i32, i64

from atalanta.kernel.arrival import NO_LINK, place_of
from atalanta.kernel.reference import BELOW, DONE, Reference

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.message import Message
    from atalanta.kernel.queue import Queue

WAITS: Final = -1  # its place lies among messages that are not in memory
LAST: Final = -2  # behind everything
UNSETTLED: Final = -3  # its place lies among what waits for the journal


class Standing:
    """Where a message belongs. `link`: of one that comes late over it. `placed`: as `spot` found, it goes in front of a
    message that came to this node before it."""

    def __init__(self, message: Message, late: bool) -> None:
        self.place: i64 = place_of(message)
        self.link: i32 = NO_LINK
        self.arrival: i64 = 0
        if late and message.arrival_link > NO_LINK:
            self.link = message.arrival_link
            self.arrival = message.arrival
        self.placed: bool = False

    def before(self, reference: Reference) -> bool:
        """Whether it belongs in front of that one. Ids say nothing of what lies in front of lower ones itself."""
        other = reference.message
        if (
            self.link != NO_LINK
            and other.arrival_link == self.link
            and other.arrival > self.arrival
        ):
            return True
        return not reference.placed and place_of(other) > self.place

    def note(self, reference: Reference) -> None:
        """It goes in front of that one."""
        self.placed = reference.placed or place_of(reference.message) < self.place


class Looked:
    """All of a queue that lies before `reference`, and that one, belongs before whatever stands no earlier."""

    def __init__(self, reference: Reference, standing: Standing) -> None:
        self.reference = reference
        self.place: i64 = standing.place
        self.arrival: i64 = standing.arrival

    def serves(self, standing: Standing) -> bool:
        """Of the same queue and link."""
        return (
            self.place <= standing.place
            and self.arrival <= standing.arrival
            and self.reference.state != DONE
        )


def looked_key(queue: Queue, standing: Standing) -> tuple[int, int]:
    return queue.id, int(standing.link)


def has_places(queue: Queue) -> bool:
    """Whether messages have places by arrival there."""
    if queue.leases or queue.acked_through > 0 or queue.keeps_messages or queue.internal:
        return False
    return queue.special is None or queue.special.last_value_key is None


def spot(
    broker: Broker, queue: Queue, standing: Standing, looked: dict[tuple[int, int], Looked]
) -> int:
    """Index in `queue.references` of the place of a message that stands so; or WAITS, LAST, UNSETTLED."""
    if queue.tombstones > 0:
        queue.references = queue.live()
        queue.tombstones = 0
    standing.placed = False
    references = queue.references
    index = 0
    known = looked.get(looked_key(queue, standing))
    if known is not None and known.serves(standing):
        index = queue.index_of(known.reference.sequence)
    while index < len(references) and not standing.before(references[index]):
        index += 1
    if index > 0:
        looked[looked_key(queue, standing)] = Looked(references[index - 1], standing)
    if index < len(references):
        standing.note(references[index])
        return index
    beyond = outside(broker, queue)
    if beyond:
        if standing.before(beyond[0]):
            standing.note(beyond[0])
            return index
        if _outside_behind(queue, standing) or _any_pending_behind(broker, queue, standing):
            return WAITS
        return LAST
    if not _any_pending_behind(broker, queue, standing):
        return LAST
    first = first_pending(broker, queue)
    if first is None or not standing.before(first):
        return UNSETTLED  # the first has come back itself, last of all
    standing.note(first)
    return index


def outside(broker: Broker, queue: Queue) -> list[Reference]:
    """The first messages that are not in memory."""
    if queue.paged is None or queue.paged.count == 0:
        return []
    references = queue.references
    behind = references[len(references) - 1].sequence if references else BELOW
    return broker.paging.reader.after(queue, behind)


def _outside_behind(queue: Queue, standing: Standing) -> bool:
    """Whether anything that is not in memory may belong behind it. Ids need not ascend there (`_any_pending_behind`),
    and of whose link they are only the messages themselves tell."""
    paged = queue.paged
    if paged is not None:
        for page in paged.pages:
            if page.id_max > standing.place or standing.link != NO_LINK:
                return True
        for reference in reversed(paged.tail):
            if standing.before(reference):
                return True
    return False


def _any_pending_behind(broker: Broker, queue: Queue, standing: Standing) -> bool:
    """Whether any that waits for the journal belongs behind it.

    Ids need not ascend there: what was sent for later waits for it when its time has come; before, it has no place.
    """
    if queue.pending > 0:
        for parked in broker.parked:
            for reference in parked.references:
                if reference.queue is queue and reference.sequence != 0:
                    if standing.before(reference):
                        return True
    return False


def first_pending(broker: Broker, queue: Queue) -> Reference | None:
    """The first for the queue that waits for the journal; what was sent for later has no place yet."""
    if queue.pending > 0:
        for parked in broker.parked:
            for reference in parked.references:
                if reference.queue is queue and reference.sequence != 0:
                    return reference
    return None
