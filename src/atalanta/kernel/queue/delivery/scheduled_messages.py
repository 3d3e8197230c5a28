"""Scheduled messages: sent with a delivery time, or waiting for redelivery.

A message *sent* with a delivery time (`_AMQ_SCHED_DELIVERY`, JMS: setDeliveryDelay) has sequence 0. The message takes
the queue's next sequence when its time comes, as if it arrived then: consumers and the log view find it behind all
earlier messages. A message that is *redelivered* (redelivery-delay) keeps its sequence and is skipped until its time
comes. Both count in `message_count` and `scheduled_count` (QueueImpl.getMessageCount). One timer serves all of them.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.reference import SCHEDULED

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

SCHEDULED_TIMER: Final = "kernel.scheduled"
STALE_MIN: Final = 1_000  # removed entries before the heap is rebuilt

# Time (ms), message id, queue id, number: ordered by time, then by arrival. The number makes every entry another one,
# so that no two references are compared.
Entry = tuple[int, int, int, int, "Reference"]


class ScheduledMessages:
    """The scheduled messages of one store.

    `waiting`: the entry of each waiting reference; the heap may hold entries that were removed.
    `in_transfer`: references being sent to another node, which keeps their time: here they wait until they are
    returned. `overdue`: those of `in_transfer` whose time has passed.
    """

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.waiting: dict[Reference, Entry] = {}
        self.number: int = 0  # of the latest entry
        self.heap: list[Entry] = []
        self.in_transfer: dict[Reference, bool] = {}
        self.overdue: dict[Reference, Entry] = {}
        self.armed_ms: int = 0  # 0: the timer is not set
        self.running: bool = True  # no timer is set while the journal is read

    def schedule_new(self, reference: Reference, at_ms: int) -> None:
        """Schedules a new message: the queue counts the message, which has no sequence yet."""
        queue = reference.queue
        queue.count_unsequenced(reference, 1)
        self.schedule(reference, at_ms)

    def schedule(self, reference: Reference, at_ms: int) -> None:
        """Schedules a reference that is not being delivered; it keeps its sequence, if it has one."""
        reference.state = SCHEDULED
        reference.consumer = None
        reference.queue.count_scheduled(reference, 1)
        self.number += 1
        entry = (at_ms, int(reference.message.id), reference.queue.id, self.number, reference)
        self.waiting[reference] = entry
        heappush(self.heap, entry)
        if self.armed_ms == 0 or at_ms < self.armed_ms:
            self.arm()

    def remove(self, reference: Reference) -> None:
        """Removes a reference that leaves its queue before its time; the caller changes the queue's counters."""
        if self.waiting.pop(reference, None) is None:
            return
        self.in_transfer.pop(reference, None)
        self.overdue.pop(reference, None)
        if len(self.heap) > 2 * len(self.waiting) + STALE_MIN:
            self.heap = [entry for entry in self.heap if self._waits(entry)]
            heapify(self.heap)

    def time_ms(self, reference: Reference) -> int:
        """Returns the time of a waiting reference."""
        return self.waiting[reference][0]

    def _waits(self, entry: Entry) -> bool:
        """Returns True unless the reference of the entry has left, or has a newer entry."""
        known = self.waiting.get(entry[4])
        return known is not None and known[3] == entry[3]

    def end_transfer(self, reference: Reference) -> None:
        """Records that a reference is no longer being sent to another node, if it was."""
        self.in_transfer.pop(reference, None)
        entry = self.overdue.pop(reference, None)
        if entry is not None:
            heappush(self.heap, entry)
            self.arm()

    def arm(self) -> None:
        """Sets the one timer to the earliest time (in the past: it fires at once)."""
        if not self.heap or not self.running:
            self.armed_ms = 0
            return
        self.armed_ms = self.heap[0][0]
        self.timers.set(SCHEDULED_TIMER, self.armed_ms * 1_000_000)

    def start(self) -> None:
        """Starts the timer after the journal has been read."""
        self.running = True
        self.arm()

    def take_due(self, now_ms: int, most: int) -> list[Reference]:
        """Returns and removes up to `most` references whose time has come, in order."""
        due: list[Reference] = []
        heap = self.heap
        while heap and heap[0][0] <= now_ms and len(due) < most:
            entry = heappop(heap)
            if not self._waits(entry):
                continue
            reference = entry[4]
            if self.in_transfer and reference in self.in_transfer:
                self.overdue[reference] = entry
                continue
            del self.waiting[reference]
            due.append(reference)
        return due

    def of_queue(self, queue: Queue) -> list[tuple[int, Reference]]:
        """Returns a queue's scheduled messages, (ms, reference), in delivery order (examines those of all queues)."""
        if queue.scheduled_count == 0:
            return []
        found: list[Entry] = []
        for entry in [*self.heap, *self.overdue.values()]:
            if entry[4].queue is queue and self._waits(entry):
                found.append(entry)
        found.sort()
        return [(entry[0], entry[4]) for entry in found]
