"""Unacknowledged messages on their way back to their queues: a consumer may have had any number of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.reference import DELIVERING
from atalanta.kernel.tasks import Task

if TYPE_CHECKING:
    from atalanta.kernel.publish.redelivery import Redelivery
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference


class ReturnedMessages(Task):
    """Messages that Redelivery.redeliver was given. They return in their order.

    Their queues deliver nothing before all are there: a consumer would get later messages first. `queues`: by id.
    `since` (ns): delays are counted from there.
    """

    def __init__(
        self,
        redelivery: Redelivery,
        since: int,
        back: list[Reference],
        delayed: bool,
        delay_ms: int,
        counted: bool,
    ) -> None:
        self.redelivery = redelivery
        self.since = since
        self.back = back
        self.delayed = delayed
        self.delay_ms = delay_ms
        self.counted = counted
        self.next: int = 0
        self.queues: dict[int, Queue] = {}
        self.holding: bool = False

    def do(self, now: int, most: int) -> int:
        back = self.back
        redelivery = self.redelivery
        count = 0
        queue: Queue | None = None
        lowest = 0
        while self.next < len(back) and count < most:
            reference = back[self.next]
            self.next += 1
            count += 1
            if reference.state != DELIVERING or reference.queue.deleted:
                continue  # finished, or in a non-destructive queue (QueueImpl.postRollback)
            if reference.queue is not queue:
                if queue is not None:
                    queue.return_to(lowest)
                queue = reference.queue
                lowest = reference.sequence
                self.queues[queue.id] = queue
            if reference.sequence < lowest:
                lowest = reference.sequence
            if not self.counted:
                reference.uncount_delivery()
            count += redelivery.give_back(now, reference, self.since, self.delayed, self.delay_ms)
        if queue is not None:
            queue.return_to(lowest)
        if self.ended():
            self._end()
        return count

    def ended(self) -> bool:
        return self.next >= len(self.back)

    def leave(self, now: int, queue: Queue) -> None:
        """Sends messages that have had their last attempt to the dead-letter address. The others end with the queue."""
        if queue.id not in self.queues:
            return
        for index in range(self.next, len(self.back)):
            reference = self.back[index]
            if reference.queue is queue and reference.state == DELIVERING:
                if not self.counted:
                    reference.uncount_delivery()
                self.redelivery.move_exhausted(now, reference)

    def wait(self) -> None:
        """Lets the queues of all its messages deliver nothing."""
        self.holding = True
        for index in range(self.next, len(self.back)):
            queue = self.back[index].queue
            if queue.id not in self.queues:
                self.queues[queue.id] = queue
        for queue in self.queues.values():
            queue.hold(1)

    def _end(self) -> None:
        """Lets the queues deliver again."""
        for queue in self.queues.values():
            if self.holding:
                queue.hold(-1)
            if not queue.deleted:
                self.redelivery.all_returned(queue)
