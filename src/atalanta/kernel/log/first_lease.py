"""The first lease of a queue: its non-durable messages become durable before the lease is granted.

Later ones are durable on arrival (Reference). So every message of a leased queue is shown to its reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import Reply
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import encode_message_record
from atalanta.kernel.memory.body_sync import BodySync
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from atalanta.kernel.queue.reference import DONE, SCHEDULED, Reference

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.paging.page import Page
    from atalanta.kernel.queue.queue import Queue

# Of one step, which is one record of the journal; the next step follows when that is durable.
STEP_MESSAGES: Final = 1_000
STEP_BYTES: Final = 4 << 20


class FirstLease(Reply):
    """The work before the first lease of a queue is granted. `done` continues it: the bodies of the current step are
    synced, or its record is durable.

    `add` takes the answers that wait for its end. `under_way` has the work until then. A restart ends it: it leaves no
    non-durable message.
    """

    def __init__(
        self, store: MessageStore, queue: Queue, under_way: dict[Queue, FirstLease]
    ) -> None:
        self.under_way = under_way
        self.store = store
        self.queue = queue
        self.position: int = 0  # all messages up to this sequence are durable with the current step
        self.paged_through: int = 0  # the last sequence in the page files of all steps
        # Page files, or else messages, of the step whose bodies are synced.
        self.pages: list[Page] = []
        self.found: list[Reference] = []
        self.waiting: list[tuple[Reply, int]] = []
        self.scheduled: list[Reference] = [
            each for each in store.scheduled.waiting if each.queue is queue and not each.durable
        ]

    def add(self, endpoint: Reply, token: int) -> None:
        """Adds an answer."""
        self.waiting.append((endpoint, token))

    def done(self, token: int) -> None:
        if self.queue.deleted:
            self._end("was deleted")
        elif self.pages or self.found:
            self._store()
        else:
            self._next_step()

    def failed(self, token: int, error: BrokerError) -> None:
        self._end(error.text)

    def _next_step(self) -> None:
        """Finds the messages of the next step. Their bodies are synced before a record makes them durable."""
        queue = self.queue
        self.pages = lighter_pages(self.store, queue)  # at each step: the tail may have become one
        if not self.pages:
            queue.note_durable(self.position)
            self.found = self._next_scheduled() or self._next()
            if not self.found:
                queue.note_durable(self.paged_through)
                self._end("")
                return
        bodies = [body for page in self.pages for body in page.unsynced_bodies()]
        for reference in self.found:
            body = reference.message.large
            if body is not None and not body.synced:
                bodies.append(body)
        if bodies:
            BodySync(self.store.large, bodies, self, 0).go_on()
        else:
            self._store()

    def _next_scheduled(self) -> list[Reference]:
        """Returns the next messages that wait for their delivery time."""
        found: list[Reference] = []
        while self.scheduled and not found:
            taken = self.scheduled[:STEP_MESSAGES]
            del self.scheduled[:STEP_MESSAGES]
            found = [each for each in taken if each.state == SCHEDULED and not each.durable]
        return found

    def _next(self) -> list[Reference]:
        """Returns the next non-durable messages of the queue; none at its end."""
        queue = self.queue
        found = self._of(queue.references, queue.index_of(self.position + 1))
        paged = paged_queue_of(queue)
        if not found and paged is not None:
            found = self._of(paged.tail, paged.index_in_tail(self.position + 1))
            if found:
                paged.forget_encoding()  # it says which messages are durable
        return found

    def _of(self, references: list[Reference], first: int) -> list[Reference]:
        found: list[Reference] = []
        size = 0
        for index in range(first, len(references)):
            reference = references[index]
            self.position = reference.sequence
            if reference.state != DONE and not reference.durable:
                found.append(reference)
                size += reference.size
                if len(found) >= STEP_MESSAGES or size >= STEP_BYTES:
                    break
        return found

    def _store(self) -> None:
        """Appends the records of the step, without the messages that left their queue meanwhile."""
        store = self.store
        pages = [page for page in self.pages if not page.ended]
        found = [each for each in self.found if each.state != DONE and not each.durable]
        self.pages = []
        self.found = []
        if pages:
            make_paged_durable(store, self.queue, pages)
            self.paged_through = max(self.paged_through, max([page.last for page in pages]))
            store.reply_when_durable(store.journal.last, self, 0)
            return
        if not found:
            self._next_step()
            return
        batch = records.Batch()
        for reference in found:
            message = reference.message
            _make_durable(reference)
            store.keep_also(reference)
            record = encode_message_record(message, store.references_of(message), [])
            batch.add(records.MESSAGE, record)
        lsn = store.append(batch, [], self, 0)
        for reference in found:
            reference.message.store_for(store.references_of(reference.message), lsn)
            if reference.state == SCHEDULED and reference.sequence != 0:
                store.store_delivery_count(reference, store.scheduled.time_ms(reference))

    def _end(self, why: str) -> None:
        """Ends the work, and answers when all that was written is durable."""
        store = self.store
        self.under_way.pop(self.queue, None)
        waiting = self.waiting
        self.waiting = []
        for endpoint, token in waiting:
            if why:
                text = f"queue {self.queue.name} {why} before its lease was granted"
                endpoint.failed(token, BrokerError(ILLEGAL_STATE, text))
            else:
                store.reply_when_durable(store.journal.last, endpoint, token)


def _make_durable(reference: Reference) -> None:
    delayed = reference.state == SCHEDULED
    if delayed:
        reference.queue.count_scheduled(reference, -1)
    reference.make_durable()
    if delayed:
        reference.queue.count_scheduled(reference, 1)


def lighter_pages(store: MessageStore, queue: Queue) -> list[Page]:
    """Returns the queue's page files with non-durable messages of this life of the node."""
    pages = store.paging.pages.values()
    return [page for page in pages if page.queue_id == queue.id and not page.old and not page.all_durable()]


def make_paged_durable(store: MessageStore, queue: Queue, pages: list[Page]) -> None:
    """Makes the non-durable messages in these page files of the queue durable, with the next record of the journal.

    The files are on disk like those of durable messages: only the PAGE records must say so.
    """
    for page in pages:
        page.make_durable()
        store.paging.store_page(page, records.Batch())
    for reference in queue.references:
        if isinstance(reference, PagedReference) and not reference.durable and reference.page.all_durable():
            _make_durable(reference)
            if reference.state == SCHEDULED:
                store.store_delivery_count(reference, store.scheduled.time_ms(reference))
    store.paging.reader.forget()
