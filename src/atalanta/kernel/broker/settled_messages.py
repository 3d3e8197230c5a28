"""Messages that a recovery has put into their queues before its end.

A passive member of a group replays the journal of the active node for days. What is older than a moment enters its
queue, so that the end of the recovery need not touch each message. Large messages and those of a queue with page files
do not: they need the files, and the whole state of the queue. What a log view has acknowledged does not either: a
retention may keep it. Last values and rings apply their rule at the end, as after a start. When a later record says
more about a message than that it has left its queue, the message is taken back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal.message_record import StoredMessage, StoredRoute
from atalanta.kernel.log import retention
from atalanta.kernel.queue.reference import DONE
from atalanta.kernel.registry.queues import encode_queue

if TYPE_CHECKING:
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.paging.recovery import PagingRecovery
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.routing.address import Address

# So many messages are left to the end of the recovery.
SETTLED_AT: Final = 1_000
KnownMessage = tuple[StoredMessage, int]


class SettledMessages:
    """The messages that are in their queues. `unsorted`: queues (by id) whose references are not in order.

    A message that was taken back leaves a finished reference there, which must go before another one of its sequence is
    looked for. `acknowledging`: queues (by id) of which an ACK_THROUGH record was replayed, so that it is known whether
    they have a retention.
    """

    def __init__(
        self,
        store: MessageStore,
        queues: dict[int, Queue],
        addresses: dict[str, Address],
        values: NamedValues,
        paging: PagingRecovery,
    ) -> None:
        self.store = store
        self.messages = store.messages
        self.unsorted: dict[int, bool] = {}
        self.acknowledging: dict[int, bool] = {}
        self._values = values
        self._queues = queues
        self._addresses = addresses
        self._paging = paging

    def takes(self, stored: StoredMessage) -> bool:
        """Returns whether the message may enter its queues now."""
        if stored.file >= 0 or not stored.message.durable:
            return False
        for route in stored.routes:
            queue = self._queues.get(route.queue_id)
            if queue is None or route.scheduled_ms > 0 or not self._is_usual(queue):
                return False
            if route.sequence <= queue.log.acked_through:  # also one without a sequence yet
                return False
        return len(stored.routes) > 0

    def ended(self, stored: StoredMessage) -> bool:
        """Returns whether log views have acknowledged the message, and no retention keeps it.

        A retention is stored with each acknowledgement, and keeps nothing that was acknowledged before it began.
        """
        if stored.file >= 0:
            return False
        for route in stored.routes:
            queue = self._queues.get(route.queue_id)
            if queue is None or not 0 < route.sequence <= queue.log.acked_through:
                return False
            if queue.id not in self.acknowledging or self._values.has(f"{retention.KEY}{queue.id}"):
                return False
        return len(stored.routes) > 0

    def _is_usual(self, queue: Queue) -> bool:
        address = self._addresses.get(queue.spec.address)
        if (
            address is None
            or not queue.durable
            or queue.id in self._paging.queues
        ):
            return False
        queue.account = address.account
        return True

    def note_order(self, queue: Queue, sequence: int) -> None:
        """Records where a reference of this sequence is about to be added: behind all others."""
        references = queue.references
        if references and references[len(references) - 1].sequence >= sequence:
            self.unsorted[queue.id] = True

    # -- later records --------------------------------------------------------------------------
    def renew(self, stored: StoredMessage, lsn: int) -> bool:
        """Handles another record of a message: a compaction has appended it again. False: the message is left out now.
        """
        message = self.messages[stored.message.id]
        routes = {route.queue_id: route for route in stored.routes}
        for reference in self.store.references_of(message):
            route = routes.pop(reference.queue.id, None)
            if route is not None and route.sequence == reference.sequence:
                reference.delivery_count = route.delivery_count
            else:
                self.store.drop_from_queue(reference)
        if message.references and not routes:
            message.lsn = lsn
            return True
        for reference in self.store.references_of(message):
            self.store.drop_from_queue(reference)
        return False

    def forget(self, message_id: int, queue_id: int) -> bool:
        """Removes the message from that queue. Returns False if it is not there."""
        message = self.messages.get(message_id)
        if message is not None:
            for reference in self.store.references_of(message):
                if reference.queue.id == queue_id:
                    self.store.drop_from_queue(reference)
                    return True
        return False

    def take_back(self, message_id: int) -> KnownMessage | None:
        """Removes the message from its queues and returns it with its lsn; None if it is in none."""
        message = self.messages.get(message_id)
        if message is None:
            return None
        routes: list[StoredRoute] = []
        for reference in self.store.references_of(message):
            count = int(reference.delivery_count)
            routes.append(StoredRoute(reference.queue.id, reference.sequence, count, reference.route_to))
            self.store.drop_from_queue(reference)
        return StoredMessage(message, routes, []), message.lsn

    def acknowledged(self, queue: Queue) -> list[Reference]:
        """Returns the references that a log view has acknowledged: a retention may keep them."""
        self.acknowledging[queue.id] = True
        if self.unsorted.pop(queue.id, False):
            queue.end_restore(False)
        found: list[Reference] = []
        for reference in queue.references:
            if reference.sequence > queue.log.acked_through:
                break
            if reference.state != DONE:
                found.append(reference)
        return found

    def renew_queue(self, queue: Queue, lsn: int, payload: bytes, next_sequence: int, acked_through: int) -> bool:
        """Handles another QUEUE record. False if it says something new."""
        known = queue.log.acked_through
        queue.restore(lsn, next_sequence, acked_through)
        return acked_through == known and encode_queue(queue) == payload

    def leave(self, queue: Queue) -> None:
        """Removes all messages from a queue that is deleted."""
        for reference in queue.live():
            self.store.drop_from_queue(reference)

    # -- the end --------------------------------------------------------------------------------
    def unusual(self, queue: Queue) -> list[Reference]:
        """Returns the references that must be taken back at the end, because pages are before them."""
        pages = self._paging.queues.get(queue.id)
        if pages is None or not queue.references:
            return []
        first = min([page.first for page in pages.pages if not page.ended], default=1 << 62)
        return [reference for reference in queue.live() if reference.sequence > first]
