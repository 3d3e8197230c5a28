"""Messages whose time has not come: sent for later, or back from a delivery that failed.

A message *sent* for later (`_AMQ_SCHED_DELIVERY`, JMS: setDeliveryDelay) has no place in its queue yet: its sequence
is 0, and it takes the next one when its time comes, as if it arrived then. Consumers and the log view alike find it
behind what was there before. A message that comes *back* (redelivery-delay) keeps its place and is passed over until
its time comes. Both count in `message_count` and `scheduled_count` (QueueImpl.getMessageCount). There is one timer
for all of them.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.queue.displacement import discard
from atalanta.kernel.queue.reference import READY, SCHEDULED

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

SCHEDULED_TIMER: Final = "kernel.scheduled"
# Messages one turn lets go; the rest follows by a zero timer.
DUE_MAX: Final = 5_000
STALE_MIN: Final = 1_000  # forgotten entries before the heap is made anew

# When (ms), message id, queue id: by time, then by arrival. No two have the same ids.
Entry = tuple[int, int, int, "Reference"]


class ScheduledMessages:
    """`times` says when (ms) each waiting reference may go; the heap may hold entries that are forgotten.

    `away`: those on their way to another node, where their time counts: here it does not come before they are back;
    `overdue` are those of them whose time it is.
    """

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.times: dict[Reference, int] = {}
        self.heap: list[Entry] = []
        self.away: dict[Reference, bool] = {}
        self.overdue: dict[Reference, Entry] = {}
        self.armed_ms: int = 0  # 0: the timer is not set
        self.running: bool = True  # no timer is set while a journal is read

    def hold_new(self, reference: Reference, at_ms: int) -> None:
        """A message that arrives for later: it counts, but has no place yet."""
        queue = reference.queue
        queue.count_unsequenced(reference, 1)
        self.hold(reference, at_ms)

    def hold(self, reference: Reference, at_ms: int) -> None:
        """A reference that is not being delivered waits at its place (or for one)."""
        reference.state = SCHEDULED
        reference.consumer = None
        reference.queue.count_scheduled(reference, 1)
        self.times[reference] = at_ms
        heappush(self.heap, (at_ms, int(reference.message.id), reference.queue.id, reference))
        if self.armed_ms == 0 or at_ms < self.armed_ms:
            self.arm()

    def forget(self, reference: Reference) -> None:
        """It leaves its queue before its time; the counters of the queue are the caller's."""
        if self.times.pop(reference, -1) < 0:
            return
        self.away.pop(reference, None)
        self.overdue.pop(reference, None)
        if len(self.heap) > 2 * len(self.times) + STALE_MIN:
            self.heap = [entry for entry in self.heap if self.times.get(entry[3], -1) == entry[0]]
            heapify(self.heap)

    def come_back(self, reference: Reference) -> None:
        """It is not on its way elsewhere any more, if it was."""
        self.away.pop(reference, None)
        entry = self.overdue.pop(reference, None)
        if entry is not None:
            heappush(self.heap, entry)
            self.arm()

    def arm(self) -> None:
        """Set the one timer to the earliest time (in the past: it fires at once)."""
        if not self.heap or not self.running:
            self.armed_ms = 0
            return
        self.armed_ms = self.heap[0][0]
        self.timers.set(SCHEDULED_TIMER, self.armed_ms * 1_000_000)

    def start(self) -> None:
        """The journal has been read: times may come."""
        self.running = True
        self.arm()

    def take_due(self, now_ms: int, most: int) -> list[Reference]:
        """Up to `most` references whose time has come, in order; they wait no longer."""
        due: list[Reference] = []
        heap = self.heap
        while heap and heap[0][0] <= now_ms and len(due) < most:
            entry = heappop(heap)
            reference = entry[3]
            if self.times.get(reference, -1) != entry[0]:
                continue
            if self.away and reference in self.away:
                self.overdue[reference] = entry
                continue
            del self.times[reference]
            due.append(reference)
        return due

    def of_queue(self, queue: Queue) -> list[tuple[int, Reference]]:
        """What waits in one queue, (ms, reference), in the order of delivery (looks at all that waits)."""
        if queue.scheduled_count == 0:
            return []
        found: list[Entry] = []
        for entry in [*self.heap, *self.overdue.values()]:
            if entry[3].queue is queue and self.times.get(entry[3], -1) == entry[0]:
                found.append(entry)
        found.sort()
        return [(entry[0], entry[3]) for entry in found]


def on_timer(store: MessageStore, now: int) -> None:
    """The earliest time has come."""
    scheduled = store.scheduled
    scheduled.armed_ms = 0
    release(store, scheduled.take_due(now // 1_000_000, DUE_MAX))
    if scheduled.armed_ms == 0:
        scheduled.arm()


def deliver_early(store: MessageStore, references: list[Reference]) -> int:
    """Let scheduled messages go now (QueueImpl.deliverScheduledMessages); how many there were."""
    released: list[Reference] = []
    for reference in references:
        if reference.state == SCHEDULED and reference not in store.scheduled.away:
            store.scheduled.forget(reference)
            released.append(reference)
    release(store, released)
    return len(released)


def release(store: MessageStore, due: list[Reference]) -> None:
    """Into their queues: what was sent for later at a new place (journalled, PLACED), what came back at its old one."""
    arriving: list[Reference] = []
    places: dict[int, list[tuple[int, int]]] = {}
    for reference in due:
        queue = reference.queue
        special = queue.special
        # Asked while it does not count as one that waits.
        refused = special is not None and reference.sequence != 0 and special.refuses(queue, reference)
        queue.count_scheduled(reference, -1)
        reference.state = READY
        if refused:
            discard(store, [reference])
            continue
        if reference.sequence != 0:
            queue.give_back(reference)
            if special is not None:
                discard(store, special.beyond_ring(queue))
            store.dispatches.mark_dirty(queue)
            if queue.open_consumers == 0 and not queue.has_match(reference.message):
                store.dispatches.note_unattended(queue)
            continue
        # It was counted at its arrival, and is going to be counted once more.
        queue.count_unsequenced(reference, -1)
        reference.sequence = queue.take_sequence()
        queue.count_pending(1)
        arriving.append(reference)
        if reference.durable:
            places.setdefault(queue.id, []).append((int(reference.message.id), reference.sequence))
    if not arriving:
        return
    batch = records.Batch()
    for queue_id, taken in places.items():
        batch.add(records.PLACED, records.encode_placed(queue_id, taken))
    store.append(batch, arriving, None, 0)
