"""Pages at recovery: their files, their finished entries, and their queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.paging.page import Page, decode_page
from atalanta.kernel.queue.paging.paged_queue import PagedQueue, paged_queue_of
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from atalanta.kernel.queue.paging.retained_messages import retained_of
from atalanta.kernel.queue.reference import Reference
from atalanta.message.encoding.buffer import DecodeError, Reader

if TYPE_CHECKING:
    from atalanta.kernel.queue.paging.paging import Paging
    from atalanta.kernel.queue.queue import Queue


class QueuePages:
    """Pages of one queue by the message ids they may hold. The id ranges normally ascend, but may overlap."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.reach: list[int] = []  # the highest id of each page and those before it
        self.sorted: bool = True

    def add(self, page: Page) -> None:
        pages = self.pages
        if pages and pages[len(pages) - 1].id_min > page.id_min:
            self.sorted = False
        before = self.reach[len(self.reach) - 1] if self.reach else 0
        pages.append(page)
        self.reach.append(max(before, page.id_max))

    def holding(self, message_id: int) -> list[Page]:
        """Returns the pages whose id range contains the id."""
        if not self.sorted:
            self._sort()
        low = 0
        high = len(self.pages)
        while low < high:
            middle = (low + high) // 2
            if self.pages[middle].id_min <= message_id:
                low = middle + 1
            else:
                high = middle
        found: list[Page] = []
        place = low - 1
        while place >= 0 and self.reach[place] >= message_id:
            page = self.pages[place]
            if page.id_max >= message_id and not page.ended:
                found.append(page)
            place -= 1
        return found

    def forget_ended(self) -> bool:
        """Forgets the pages that have ended. Returns whether any is left."""
        if any([page.ended for page in self.pages]):
            self._sort()
        return len(self.pages) > 0

    def _sort(self) -> None:
        pages = [page for page in self.pages if not page.ended]
        pages.sort(key=_by_id)
        self.pages = []
        self.reach = []
        self.sorted = True
        for page in pages:
            self.add(page)


class PagingRecovery:
    """Collects the records about pages from Recovery.

    An id without a MESSAGE record is kept if a page may hold the message; in `acked` it is true if no other page may
    hold it. `damaged`: large messages whose file is damaged, also those outside of pages: queue -> (message id,
    sequence, 0 if it was scheduled).
    """

    def __init__(self) -> None:
        self.pages: dict[int, Page] = {}
        self.queues: dict[int, QueuePages] = {}
        self.acked: dict[int, dict[int, bool]] = {}
        self.delivered: dict[int, dict[int, tuple[int, int]]] = {}
        self.damaged: dict[Queue, list[tuple[int, int]]] = {}

    def note_damaged(self, queue: Queue, message_id: int, sequence: int) -> None:
        """Records a large message whose file is damaged."""
        self.damaged.setdefault(queue, []).append((message_id, sequence))

    def page(self, lsn: int, payload: bytes) -> tuple[Page, list[int]]:
        """Reads a PAGE record: returns the page, and the ids of the messages whose own records it replaces."""
        page, message_ids = decode_page(Reader(payload))
        page.lsn = lsn
        previous = self.pages.get(page.number)
        if previous is not None:
            previous.ended = True
            self.acked.pop(page.number, None)  # the record has these
            self.delivered.pop(page.number, None)
        self.pages[page.number] = page
        self.queues.setdefault(page.queue_id, QueuePages()).add(page)
        return page, message_ids

    def done(self, number: int) -> None:
        """Handles a PAGE_DONE record."""
        page = self.pages.pop(number, None)
        if page is not None:
            page.ended = True
            self.acked.pop(number, None)
            self.delivered.pop(number, None)

    def forget_ended(self) -> None:
        """Forgets pages that have ended: `done` leaves them in the order of their queue."""
        for queue_id in list(self.queues):
            pages = self.queues[queue_id]
            if not pages.forget_ended():
                del self.queues[queue_id]

    def ack(self, queue_id: int, message_id: int) -> None:
        known = self.queues.get(queue_id)
        if known is not None:
            pages = known.holding(message_id)
            for page in pages:
                self.acked.setdefault(page.number, {})[message_id] = len(pages) == 1

    def deliver(self, queue_id: int, message_id: int, count: int, at_ms: int) -> None:
        known = self.queues.get(queue_id)
        if known is not None:
            for page in known.holding(message_id):
                self.delivered.setdefault(page.number, {})[message_id] = (count, at_ms)

    # -- end of recovery ------------------------------------------------------------------------
    def attach(self, paging: Paging, queues: dict[int, Queue]) -> None:
        """Attaches the pages to their queues, before other messages. Messages of damaged files are reported."""
        if not paging.on:
            if self.pages:
                raise DecodeError("page", 0, "the journal speaks of page files, and paging is off")
            return
        there = dict.fromkeys(paging.files.numbers(), True)
        for page in sorted(self.pages.values(), key=_by_sequence):
            queue = queues.get(page.queue_id)
            if queue is None:
                continue
            missing = not there.pop(page.number, False)
            self._attach(paging, queue, page)
            if missing and not page.ended:
                paging.reader.read(queue, page, 0)
        for number in there:
            paging.files.delete(number)
        paging.drop_damaged()
        self.pages.clear()
        self.queues.clear()

    def _attach(self, paging: Paging, queue: Queue, page: Page) -> None:
        paging.pages[page.number] = page
        page.live = page.durable_count
        page.keep_back(0, 0)
        page.unread_bytes = page.durable_bytes
        log = queue.log
        whole = log.released_through() < page.first and page.last <= log.acked_through  # retained
        acked = self.acked.pop(page.number, {})
        self._restore_bodies(paging, queue, page, acked)
        delivered = self.delivered.pop(page.number, {})
        retained = retained_of(queue)
        kept = page.live if whole else 0
        if acked or delivered or page.finished or (page.first <= log.acked_through and not whole):
            kept = _count(paging, queue, page, acked, delivered)
        if page.live == 0:
            paging.done(page)
            return
        if retained is not None and kept > 0:
            retained.add_page(page)
        if page.live == kept:
            page.hand_over()
            return
        paged = paged_queue_of(queue)
        if paged is None:
            paged = PagedQueue(queue, paging.reader)
            queue.paged = paged
        paged.pages.append(page)
        paged.last = page.last
        paged.page_end = page.last
        paging.count_outside(paged, page.unread, page.unread_bytes)
        queue.message_count += page.unread
        queue.bytes += page.unread_bytes

    def _restore_bodies(
        self, paging: Paging, queue: Queue, page: Page, acked: dict[int, bool]
    ) -> None:
        """Assigns the large messages their files; a message whose file is damaged counts as finished."""
        bodies = paging.store.large
        for index, file, size, crc in page.large:
            if page.is_finished(index):
                continue
            body = bodies.restored(file, size, crc)
            if body is not None:
                bodies.hold(body, 1)
                page.bodies[index] = body
                continue
            block = page.block_of(index)
            entries = paging.reader.read(queue, page, block)
            if entries is None:
                continue  # the damaged block is reported, with this message
            page.finish(index)
            entry = entries[index - page.starts[block]]
            message_id = int(entry.message.id)
            if message_id not in acked and entry.sequence > queue.log.released_through():
                bodies.damaged(file, size, message_id, queue.name)
                self.note_damaged(queue, message_id, entry.sequence)
        page.large = []


def _count(
    paging: Paging,
    queue: Queue,
    page: Page,
    acked: dict[int, bool],
    delivered: dict[int, tuple[int, int]],
) -> int:
    """Examines every entry: marks the finished ones and counts the others. Returns the number of retained ones.

    The entries of damaged blocks count, too, as far as they may be unfinished: Paging.drop_damaged reports them. An id
    that another page may hold finishes none of them.
    """
    live = 0
    live_bytes = 0
    unread = 0
    kept = 0
    last = 0
    ended_id = -1  # an id of which an entry was acknowledged: it is that of all entries of the message
    released = queue.log.released_through()
    for block in range(len(page.starts)):
        if page.block_is_finished(block):
            continue
        entries = paging.reader.read(queue, page, block)
        if entries is None:
            left = 0
            for index in range(page.starts[block], page.end_of(block)):
                left += 0 if page.is_finished(index) else 1
            unread += max(0, min(left, page.last_of(block) - released))
            continue
        for at, entry in enumerate(entries):
            index = page.starts[block] + at
            message_id = int(entry.message.id)
            below = entry.sequence <= released
            was_acked = acked.pop(message_id, None) is not None or message_id == ended_id
            if was_acked:
                ended_id = message_id
            if was_acked or not entry.durable or below:
                if not page.is_finished(index):
                    page.finish(index)
            if page.is_finished(index):
                ended = page.bodies.pop(index, None)
                if ended is not None:
                    paging.store.large.release(ended)
                continue
            if message_id in delivered:
                page.deliveries[index] = delivered[message_id]
            live += 1
            if entry.sequence <= queue.log.acked_through:
                kept += 1
                last = index + 1
            else:
                live_bytes += entry.message.size
    for sure in acked.values():
        unread -= 1 if sure else 0
    page.live = live + max(0, unread)
    page.unread_bytes = live_bytes
    page.keep_back(kept, last)
    return kept


def pull(paging: Paging, now: int, queue: Queue, message_id: int) -> Reference | None:
    """Reads the pages that may hold a message of a branch in doubt; returns its reference, or None."""
    paged = paged_queue_of(queue)
    if paged is not None:
        for page in list(paged.pages):
            if page.id_min <= message_id <= page.id_max:
                paging.read_through(now, queue, page.last)
    for reference in queue.references:
        if reference.message.id == message_id and isinstance(reference, PagedReference):
            return reference
    return None


def out_of_tail(paging: Paging, reference: Reference) -> None:
    """Moves a message of a branch in doubt from the tail to memory: a page file must not hold it (Paging.take)."""
    queue = reference.queue
    paged = paged_queue_of(queue)
    if paged is None:
        return
    index = paged.index_in_tail(reference.sequence)
    if index >= len(paged.tail) or paged.tail[index] is not reference:
        return
    del paged.tail[index]
    paged.forget_encoding()
    paged.tail_bytes -= reference.size
    paging.tail_bytes -= reference.size
    paging.count_outside(paged, -1, -reference.size)
    queue.enter(reference)
    paging.touch(queue)


def _by_id(page: Page) -> int:
    return page.id_min


def _by_sequence(page: Page) -> int:
    return page.first
