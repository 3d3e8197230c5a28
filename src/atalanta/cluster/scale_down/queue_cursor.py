"""The order in which the messages of one address are moved: by arrival, and each once, however many queues hold it.

Message ids ascend with arrival, and so do the sequences of every queue. The heads of the queues are therefore merged
by id, and queues with the same message at the head get it together. Artemis moves queue by queue, the fullest first,
and takes messages out of order from the others. Scheduled messages without a sequence are moved last, by time.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from atalanta.kernel.queue.reference import DELIVERING, READY, SCHEDULED, Reference

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.delivery.scheduled_messages import ScheduledMessages
    from atalanta.kernel.queue.queue import Queue


class QueueCursor:
    """Iterates over the messages of one queue.

    `waiting` means that the next messages are in page files and there is no memory for them yet. Messages up to
    sequence `pinned`, and those that `stay`, are left out.
    """

    def __init__(
        self, store: MessageStore, queue: Queue, stay: dict[Reference, bool], pinned: int = 0
    ) -> None:
        self.store = store
        self.queue = queue
        self.stay = stay
        self.position: int = pinned + 1 if pinned > 0 else 0
        self.waiting: bool = False
        self.later: deque[Reference] | None = None

    def head(self) -> Reference | None:
        """Returns the next message that is not in delivery. None means that there is none, or `waiting`."""
        self.waiting = False
        queue = self.queue
        references = queue.references
        index = queue.index_of(self.position)
        while index < len(references):
            reference = references[index]
            if reference.state in (READY, SCHEDULED) and reference not in self.stay:
                self.position = reference.sequence
                return reference
            index += 1
        if references:
            self.position = max(self.position, references[-1].sequence + 1)
        if queue.paged is not None:
            if self.store.paging.read_more(self.store.now, queue, True):
                return self.head()
            if queue.paged is not None:
                # Memory is freed by the messages under way. If there are none, the messages that
                # stay leave no memory for the rest.
                self.waiting = queue.delivering_count > 0
                return None
        return self._head_of_later()

    def _head_of_later(self) -> Reference | None:
        if self.later is None:
            scheduled = self.store.scheduled.of_queue(self.queue)
            self.later = deque(each for _, each in scheduled if each.sequence == 0 and each not in self.stay)
        while self.later:
            if self.later[0].state == SCHEDULED:
                return self.later[0]
            self.later.popleft()
        return None

    def take(self, reference: Reference) -> None:
        """Reserves the message for the transfer: no consumer gets it, unless it is given back."""
        if reference.state == READY:
            self.queue.reserve(reference, reference.delivery_count)
        elif reference.state == SCHEDULED:
            self.store.scheduled.in_transfer[reference] = True
        if reference.sequence != 0:
            self.position = reference.sequence + 1
        elif self.later:
            self.later.popleft()


def give_back(scheduled: ScheduledMessages, references: list[Reference]) -> None:
    """Gives messages that did not arrive back to their queues, each at its old position."""
    for reference in references:
        scheduled.end_transfer(reference)
        if reference.state == DELIVERING:
            reference.queue.give_back(reference)


class AddressCursor:
    """Iterates over the queues of one address. Call `take` until it returns None and `waiting` is False."""

    def __init__(
        self,
        store: MessageStore,
        queues: list[Queue],
        stay: dict[Reference, bool],
        pinned: dict[str, int],
    ) -> None:
        self.walks = [QueueCursor(store, queue, stay, pinned.get(queue.name, 0)) for queue in queues]
        self.heads: list[tuple[int, int, Reference]] = []  # message id, index of the walk
        self.idle: list[int] = list(range(len(queues)))  # walks without a head
        self.waiting: bool = False

    def take(self) -> list[Reference] | None:
        """Returns one message, as a reference of each queue that holds it."""
        self._find_heads()
        if self.waiting or not self.heads:
            return None
        message_id, index, reference = heappop(self.heads)
        taken = [reference]
        self.idle = [index]
        while self.heads and self.heads[0][0] == message_id:
            _, index, reference = heappop(self.heads)
            taken.append(reference)
            self.idle.append(index)
        found: list[Reference] = []
        for index, reference in zip(self.idle, taken, strict=True):
            if reference.state in (READY, SCHEDULED):
                self.walks[index].take(reference)
                found.append(reference)
        return found if found else self.take()

    def _find_heads(self) -> None:
        self.waiting = False
        missing: list[int] = []
        for index in self.idle:
            head = self.walks[index].head()
            if head is not None:
                heappush(self.heads, (int(head.message.id), index, head))
            elif self.walks[index].waiting:
                self.waiting = True
                missing.append(index)
        self.idle = missing
