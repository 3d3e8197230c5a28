"""Messages that come back to a queue of this node, to the place that their arrival here gives them.

Ids of one node's messages ascend as they arrive, and one that comes back keeps its id: it goes in front of the first
message of the queue that has a higher one, and so the order of each producer holds among all that nobody has taken
yet. Its sequence is one that is free there; where none is, messages before it move to lower ones, below the first
sequence of the queue if need be (0 is never used: kernel/scheduled.py). The moves are journalled (PLACED) in the
record of the message that comes. Where they are many they are made in slices, over several turns, each in a record of
its own: a gap goes through the queue from its front, so that after each slice the order is what it was.

A queue that was read as a log takes nothing back like this: sequences are places in its log, given once. Nor does a
non-destructive queue, whose consumers have positions in it.

What comes late from another node (arrival.py) gets its place like this too, out of the queue where it waits for that.

Who brings messages back holds the queue until their records are durable (holding.py), and while there are more of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel import records
from atalanta.kernel.displacing import enter
from atalanta.kernel.finishing import drop_from_queue, store_delivery_count
from atalanta.kernel.message_record import encode_message_record
from atalanta.kernel.moves import reroute
from atalanta.kernel.placing import over_limit
from atalanta.kernel.priorities import LEVELS
from atalanta.kernel.reference import DONE, READY, SCHEDULED, PagedReference, Reference
from atalanta.kernel.router import Route
from atalanta.kernel.spots import (
    LAST,
    UNSETTLED,
    WAITS,
    Looked,
    Standing,
    first_pending,
    has_places,
    looked_key,
    outside,
    spot,
)
from atalanta.kernel.story import places, tell

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.consumer import Consumer
    from atalanta.kernel.message import Message
    from atalanta.kernel.queue import Queue
    from atalanta.kernel.queue_consumers import Pass

ROOM_MIN: Final = 16  # a smaller gap is used only where it is near
SLICE_MAX: Final = 1_000  # messages that move in one turn


class Room:
    """How many messages may move yet in this turn, and how far a gap has come that is on its way.

    `gaps`: queue id -> the message right behind it.
    """

    def __init__(self) -> None:
        self.left: int = SLICE_MAX
        self.gaps: dict[int, Reference] = {}


class Return:
    """One message of another queue of this node, on its way back to `targets`.

    `looked`: where to begin to look for the place of the next one that comes back to a queue (`looked_key`).
    `late`: it never was here before, and has its place among those of its link (arrival.py).
    """

    def __init__(
        self,
        broker: Broker,
        reference: Reference,
        targets: list[Queue],
        looked: dict[tuple[int, int], Looked],
        late: bool = False,
    ) -> None:
        self.broker = broker
        self.reference = reference
        self.targets = targets
        self.looked = looked
        self.spots: list[int] = []
        self.placed: list[bool] = []  # for each target: in front of what came to this node before it
        self.unsettled: bool = False
        self.stays_for: bytes = b""  # ids of other queues: for those it stays where it is, under the same id
        self.moves: list[tuple[int, int]] = []  # for each target: the first that moves, and to where
        message = reference.message
        known = broker.messages.get(message.id) if reference.durable else None
        self.message: Message = message if known is None else known
        self.standing = Standing(message, late)

    def keeps_its_place(self) -> bool:
        """Whether the queues have places by arrival, and the message may lie in them under its own id."""
        for queue in self.targets:
            if not has_places(queue):
                return False
            for other in self.message.references:
                if other.queue is queue:
                    return False
        scheduled_ms = self.message.scheduled_ms
        return self.reference.sequence != 0 and scheduled_ms <= self.broker.now // 1_000_000

    def waits_for(self) -> Queue | None:
        """A queue whose messages in page files have to come into memory first; if `unsettled`, those on their way to
        the journal."""
        self.spots = []
        self.placed = []
        for queue in self.targets:
            index = spot(self.broker, queue, self.standing, self.looked)
            self.unsettled = index == UNSETTLED
            if index in (WAITS, UNSETTLED):
                return queue
            self.spots.append(index)
            self.placed.append(self.standing.placed)
        return None

    def makes_room(self, spare: int, room: Room) -> bool:
        """After `waits_for`: whether few enough have to move; else some have, and the rest moves in the next turns.

        `spare`: so many more may follow.
        """
        self.moves = []
        before = room.left
        for queue, index in zip(self.targets, self.spots, strict=True):
            if index == LAST:
                self.moves.append((0, 0))
                continue
            first, base = _gap(self.broker, queue, index, spare, room.gaps.get(queue.id))
            if index - first > room.left:
                room.left = before
                self._slice(queue, first, min(index, first + before), base, room)
                return False
            room.left -= index - first
            self.moves.append((first, base))
        for queue in self.targets:
            room.gaps.pop(queue.id, None)
        return True

    def _slice(self, queue: Queue, first: int, end: int, base: int, room: Room) -> None:
        if first < end:
            batch = records.Batch()
            _move(queue, first, end, base, batch)
            self.broker.append_batch(batch, [], [], None, 0)
            room.left -= end - first
            if end < len(queue.references):
                room.gaps[queue.id] = queue.references[end]

    def go(self) -> list[Reference]:
        """From its queue into the others, in one record, after `makes_room`.

        Returns the references that are in their queues already: those are to be held until the record is durable.
        """
        broker = self.broker
        message = self.message
        old = self.reference
        batch = records.Batch()
        now_here: list[Reference] = []
        later: list[Reference] = []
        for at, queue in enumerate(self.targets):
            index = self.spots[at]
            first, base = self.moves[at]
            if index == LAST:
                sequence = queue.take_sequence()
            else:
                sequence = _move(queue, first, index, base, batch)
            reference = Reference(message, queue, sequence, b"")
            reference.delivery_count = old.delivery_count
            reference.placed = self.placed[at]
            if broker.memory.charge(reference):
                over_limit(broker, queue)
            if index == LAST:
                queue.pending += 1
                later.append(reference)
            else:
                now_here.append(reference)
        if message.large is not None:
            broker.large.hold(message.large, len(self.targets))
        if self.stays_for:
            old.route_to = self.stays_for
        elif old.durable:
            batch.add(records.ACKS, records.encode_acks(old.queue.id, [message.id]))
        stored = self._store([*now_here, *later], batch)
        if not self.stays_for:
            drop_from_queue(broker, old)
        if broker.trace.on:
            if not self.stays_for:
                tell(broker.trace, "story_moved_away", message, old.queue.name)
            tell(broker.trace, "story_routed", message, places([*now_here, *later]))
        lsn = broker.append_batch(batch, [], later, None, 0)
        if stored:
            message.lsn = lsn
            for other in message.references:
                if other.state == SCHEDULED and other.sequence != 0:
                    store_delivery_count(broker, other, broker.scheduled.times[other])
        for reference in now_here:
            _enter(broker, reference)
            key = looked_key(reference.queue, self.standing)
            self.looked[key] = Looked(reference, self.standing)
        return now_here

    def _store(self, new: list[Reference], batch: records.Batch) -> bool:
        """The message's record, with its new places and those it has elsewhere; False if none of them is durable."""
        durable = [reference for reference in new if reference.durable]
        if not durable:
            return False
        broker = self.broker
        message = self.message
        kept = message.references
        if not self.stays_for:
            kept = [each for each in kept if each is not self.reference]
        record = encode_message_record(message, [*kept, *durable], [], broker.arrivals)
        batch.add(records.MESSAGE, record)
        if message.plain:
            message.plain = False
            broker.journal.forget(message.lsn)
        if message.id not in broker.messages:
            broker.messages[message.id] = message
            broker.stored_bytes += durable[0].size
        message.references = [*message.references, *durable]
        return True


# -- room ---------------------------------------------------------------------------------------------
def _gap(
    broker: Broker, queue: Queue, index: int, spare: int, known: Reference | None
) -> tuple[int, int]:
    """Free sequences before the reference at `index` (or what is not in the list yet): references[first:index] have to
    move to those from `base` on. `known` lies right behind a gap that was made for it.

    There are no tombstones in the list (`spot`).
    """
    references = queue.references
    if index < len(references):
        above = references[index].sequence
    else:
        above = queue.next_sequence
        beyond = outside(broker, queue)
        if beyond:
            above = beyond[0].sequence
        pending = first_pending(broker, queue)
        if pending is not None:
            above = min(above, pending.sequence)
    if known is not None and known.state != DONE:
        at = queue.index_of(known.sequence)
        if 0 < at <= index and at < len(references) and references[at] is known:
            below = references[at - 1].sequence
            if free_between(below, known.sequence) >= ROOM_MIN:
                return at, below + 1
    first = index  # of those that move
    end = above
    while first > 0:
        below = references[first - 1].sequence
        room = free_between(below, end)
        if room >= ROOM_MIN or (room > 0 and index - first < ROOM_MIN):
            return first, below + 1
        first -= 1
        end = below
    base = end - spare - 1
    if base <= 0:
        base = min(end, 1) - (index + 1) - spare - 1  # all of them below 0
    return 0, base


def free_between(low: int, high: int) -> int:
    """How many sequences lie between those two."""
    return high - low - 1 - (1 if low < 0 < high else 0)


def _move(queue: Queue, first: int, index: int, base: int, batch: records.Batch) -> int:
    """references[first:index] take the sequences from `base` on; returns the next one."""
    references = queue.references
    browsing: list[tuple[Consumer, int, int]] = []  # the last: a level, or -1 for the position
    levels = LEVELS if queue.priorities.mixed() else 0
    for consumer in queue.consumers:
        if consumer.browse_only:
            for level in range(-1, levels):
                at = queue.index_of(consumer.position if level < 0 else consumer.cursors[level])
                if first <= at < index:
                    browsing.append((consumer, at, level))
    passing: list[tuple[Pass, int]] = []
    if queue.passes is not None:
        for each in queue.passes:
            at = queue.index_of(each.cursor)
            if first <= at < index:
                passing.append((each, at))
    moved: list[tuple[int, int]] = []
    sequence = base
    for at in range(first, index):
        if sequence == 0:
            sequence = 1
        reference = references[at]
        if reference.sequence != sequence:
            reference.sequence = sequence
            if isinstance(reference, PagedReference):
                reference.page.places[reference.index] = sequence
            if reference.durable:
                moved.append((int(reference.message.id), sequence))
        sequence += 1
    for consumer, at, level in browsing:
        if level < 0:
            consumer.position = references[at].sequence
        else:
            consumer.cursors[level] = references[at].sequence
    for each, at in passing:
        each.cursor = references[at].sequence
    if moved:
        batch.add(records.PLACED, records.encode_placed(queue.id, moved))
    if first < index:
        _look_again(queue, references[first].sequence)
    return sequence if sequence != 0 else 1


def _look_again(queue: Queue, sequence: int) -> None:
    """What lies from there on may be READY."""
    queue.cursor = min(queue.cursor, sequence)
    queue.look_again(sequence)
    if queue.priorities.mixed():
        queue.priorities.cursors = [min(each, sequence) for each in queue.priorities.cursors]
    if queue.groups is not None:
        passed = queue.groups.passed
        for key in passed:
            passed[key] = min(passed[key], sequence)
    if queue.special is not None:
        queue.special.oldest = min(queue.special.oldest, sequence)


def _enter(broker: Broker, reference: Reference) -> None:
    """Into the list, to be handed out before all that is behind it."""
    queue = reference.queue
    queue.message_count += 1
    queue.added += 1
    queue.bytes += reference.size
    if reference.durable:
        queue.durable_through = max(queue.durable_through, reference.sequence)
    queue.enter(reference)
    queue.give_back(reference)
    if queue.special is not None:
        enter(broker, queue.special, reference)
    broker.mark_dirty(queue)
    if queue.open_consumers == 0 and not queue.has_match(reference.message):
        broker.note_unattended(queue)


def settle_front(broker: Broker, queue: Queue) -> None:
    """The queue is read as a log, whose first sequence is 1: what lies below goes behind everything, as a copy."""
    for reference in queue.live():
        if reference.sequence > 0:
            return
        if reference.state == READY:
            reroute(broker, reference, [Route(queue, b"")], "read as a log")
