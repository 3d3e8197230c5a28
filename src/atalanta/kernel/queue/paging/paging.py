"""Paging: messages that arrive while an address (or the node) is full go to page files.

See docs/internals/paging.md. Each message is first in the journal (MESSAGE record) before its sender gets the reply.
Then the message waits in the queue's tail instead of entering the full queue. When the tail has the size of a page, it
is written to a file at once, and a PAGE record replaces the MESSAGE records. Pages are read back block by block, the
oldest first; a file is deleted when all its messages are finished.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.memory.address_memory import PAGE
from atalanta.kernel.ports import Pages
from atalanta.kernel.queue.log_state import PAGE_FILE_DAMAGED
from atalanta.kernel.queue.paging.page import Page, PageEntry, encode_page, ranges_text
from atalanta.kernel.queue.paging.paged_queue import (
    BLOCK_BYTES,
    PagedQueue,
    paged_queue_of,
    within_prefetch,
)
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from atalanta.kernel.queue.paging.reader import PageReader, alive
from atalanta.kernel.queue.reference import DELIVERING, READY, Reference
from atalanta.kernel.trace import trace_message
from atalanta.message.encoding.buffer import Writer

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_table import MessageTable
    from atalanta.kernel.queue.queue import Queue

# The least size of a page, in bytes or messages, while memory is short.
TAIL_BYTES_MIN: Final = 16 * 1024
TAIL_MESSAGES_MIN: Final = 64
# The tails of all queues may take this share of the node's memory before they are written early.
TAIL_SHARE: Final = 4
# Bytes of pages not yet durable above which senders get no credits.
UNWRITTEN_BYTES_MAX: Final = 64 << 20
# Bytes kept ready for consumers while memory is not short; a consumer with credit gets up to max-read-page-*.
READY_BYTES: Final = 4 * BLOCK_BYTES
TAIL_MESSAGES_A_TURN: Final = 1_000


class Paging:
    """The paging of one store. `pages`: every page with an unfinished message, by number."""

    def __init__(self, store: MessageTable, files: Pages | None) -> None:
        self.store = store
        self.files = files if files is not None else Pages()
        self.on = files is not None
        self.pages: dict[int, Page] = {}
        self.reader = PageReader(self.files)
        self.tail_bytes: int = 0
        self.unwritten_bytes: int = 0
        self.written: int = 0
        # (lsn of its record, number, bytes) of pages that are not known to be durable.
        self.unwritten: deque[tuple[int, int, int]] = deque()
        # Files to delete when their PAGE_DONE record is durable.
        self.deletable: deque[tuple[int, Page]] = deque()
        self.touched: list[Queue] = []
        self.finished_pages: list[Page] = []

    # -- writing --------------------------------------------------------------------------------
    def start(self, queue: Queue) -> None:
        """Starts paging, because the queue's address or the node is full: further messages wait outside its list."""
        if not self.on or queue.account.policy != PAGE or queue.deleted:
            return
        queue.paged = PagedQueue(queue, self.reader)
        self.store.trace.count("paging_started")

    def take(self, reference: Reference) -> None:
        """Takes a stable message for a queue that pages."""
        queue = reference.queue
        paged = paged_queue_of(queue)
        assert paged is not None
        queue.count_in(reference)
        if reference.state != READY:
            queue.enter(reference)  # a transaction in doubt holds the message: it stays in memory
            return
        paged.tail.append(reference)
        paged.tail_bytes += reference.size
        self.tail_bytes += reference.size
        self.count_outside(paged, 1, reference.size)
        paged.last = reference.sequence
        self.touch(queue)

    def take_restored(self, reference: Reference) -> None:
        """Takes a message behind the queue's pages, at recovery and in any order."""
        queue = reference.queue
        paged = paged_queue_of(queue)
        assert paged is not None
        queue.count_in(reference)
        self.add_to_tail(paged, reference)
        self.count_outside(paged, 1, reference.size)
        paged.last = max(paged.last, reference.sequence)

    def add_to_tail(self, paged: PagedQueue, reference: Reference) -> None:
        """Appends a message to a tail."""
        paged.tail.append(reference)
        paged.tail_bytes += reference.size
        self.tail_bytes += reference.size

    def take_from_tail(self, paged: PagedQueue, sequence: int) -> list[Reference]:
        """Removes the messages up to `sequence` from a tail, and returns them."""
        taken = paged.tail[: paged.index_in_tail(sequence + 1)]
        if taken:
            paged.tail = paged.tail[len(taken) :]
            paged.forget_encoding()
            for reference in taken:
                paged.tail_bytes -= reference.size
                self.tail_bytes -= reference.size
        return taken

    def count_outside(self, paged: PagedQueue, count: int, size: int) -> None:
        """Counts messages and bytes of the queue that are outside its list (negative: that entered the list)."""
        paged.count += count
        paged.bytes += size
        account = paged.queue.account
        account.paged_messages += count
        account.paged_bytes += size
        if count > 0 and account.page_full():
            self.store.memory.refuse(account)

    def count_removed(self, paged: PagedQueue, count: int, size: int) -> None:
        """Counts messages outside of the queue's list that are gone for good."""
        paged.queue.message_count -= count
        paged.queue.bytes -= size
        self.count_outside(paged, -count, -size)

    def touch(self, queue: Queue) -> None:
        """Lists the queue for the work of this batch of inputs."""
        paged = paged_queue_of(queue)
        if paged is not None and not paged.touched:
            paged.touched = True
            self.touched.append(queue)

    def process(self, now: int) -> None:
        """Writes full tails as pages and reads what is needed, once per batch of inputs and before the dispatch."""
        work = self.touched
        self.touched = []
        for queue in work:
            paged = paged_queue_of(queue)
            if paged is None:
                continue
            paged.touched = False
            if queue.deleted:
                continue
            if queue.keeps_messages:
                self.store.dispatches.mark_dirty(queue)
            if not queue.paused:
                self._read_back(now, queue, paged)
            if queue.paged is None:
                continue
            if not paged.tail and not paged.pages:
                queue.paged = None
                continue
            paged.encode_tail()
            if self.page_is_due(paged):
                self._write(paged)

    def _read_back(self, now: int, queue: Queue, paged: PagedQueue) -> None:
        full = self.store.memory.full_for(queue.account)
        if queue.spec.last_value_key is not None and not full:
            # Newer values replace older ones, so reading back may need no more memory. Without this, a queue without
            # consumers would never stop paging.
            self.read_next(now, queue)
        elif paged.wanted or queue.consumer_count() > 0 or not (paged.pages or full):
            self.read_more(now, queue, False)

    def page_is_due(self, paged: PagedQueue) -> bool:
        """Returns true if the tail has the size of a page, or memory is short."""
        size = paged.tail_bytes
        account = paged.queue.account
        memory = self.store.memory
        page_bytes = min(account.page_size_bytes, max(account.limit_bytes // 2, TAIL_BYTES_MIN))
        if size >= page_bytes:
            return True
        limit_messages = min(account.limit_messages, memory.limit_messages)
        if len(paged.tail) >= max(limit_messages // 2, TAIL_MESSAGES_MIN):
            return True
        short = self.tail_bytes * TAIL_SHARE >= memory.limit_bytes
        return short and size >= TAIL_BYTES_MIN

    def _write(self, paged: PagedQueue) -> None:
        """Writes the whole tail as a page; its messages leave memory."""
        tail = paged.tail
        self.write_tail(paged)
        for reference in tail:
            self.store.drop(reference)

    def write_tail(self, paged: PagedQueue) -> Page:
        """Writes the whole tail as a page and returns it; the caller drops the messages of the old tail."""
        store = self.store
        paged.encode_tail()
        tail = paged.tail
        page = Page(store.take_message_id(), paged.queue.id)
        page.entries = len(tail)
        page.first = tail[0].sequence
        page.last = tail[page.entries - 1].sequence
        page.starts = paged.starts
        page.firsts = paged.firsts
        page.live = page.entries
        page.unread = page.entries
        page.unread_bytes = paged.tail_bytes
        page.id_min = tail[0].message.id
        ids: list[int] = []
        for index, reference in enumerate(tail):
            message_id = reference.message.id
            page.id_min = min(page.id_min, message_id)
            page.id_max = max(page.id_max, message_id)
            body = reference.message.large
            if body is not None:
                store.large.hold(body, 1)
                page.bodies[index] = body
                if not reference.durable:
                    page.non_durable[index] = True
            if reference.durable:
                ids.append(message_id)
                page.durable_count += 1
                page.durable_bytes += reference.size
        batch = records.Batch()
        batch.add(records.PAGE, encode_page(page, ids))
        self.write_page(page, paged.take_blocks(), batch)
        for reference in tail:
            if store.trace.on:
                trace_message(store.trace, "trace_paged", reference.message, paged.queue.name)
        self.pages[page.number] = page
        paged.pages.append(page)
        paged.tail = []
        self.tail_bytes -= paged.tail_bytes
        paged.tail_bytes = 0
        store.trace.count("pages_written")
        return page

    def write_page(self, page: Page, blocks: list[bytes], batch: records.Batch) -> None:
        """Writes the file of a new page, and appends its PAGE record with the rest of the batch."""
        size = self.files.write(page.number, blocks)
        page.lsn = batch.append_to(self.store.journal)
        self.unwritten.append((page.lsn, page.number, size))
        self.unwritten_bytes += size
        self.written += 1
        self.store.memory.set_disk_behind(self.unwritten_bytes >= UNWRITTEN_BYTES_MAX)

    def on_durable(self, lsn: int) -> None:
        """Handles that everything up to `lsn` is on disk."""
        while self.unwritten and self.unwritten[0][0] <= lsn:
            _, number, size = self.unwritten.popleft()
            self.files.settled(number)
            self.unwritten_bytes -= size
        memory = self.store.memory
        if memory.disk_behind and self.unwritten_bytes < UNWRITTEN_BYTES_MAX:
            memory.set_disk_behind(False)
        while self.deletable and self.deletable[0][0] <= lsn:
            page = self.deletable.popleft()[1]
            if page.damaged:
                self.files.keep(page.number)
            else:
                self.files.delete(page.number)

    # -- reading --------------------------------------------------------------------------------
    def after(self, queue: Queue, sequence: int) -> list[Reference]:
        """Returns messages outside of memory behind `sequence`, see PagedQueue.after; none if the queue does not page.
        """
        paged = paged_queue_of(queue)
        return paged.after(sequence) if paged is not None else []

    def read_more(self, now: int, queue: Queue, credit_waits: bool) -> bool:
        """Reads the next block (or a part of the tail) if memory allows; returns true if messages entered the queue.

        `credit_waits`: a consumer has credit, and takes none of the messages in memory.
        """
        paged = paged_queue_of(queue)
        if paged is None or not self._has_room(queue, paged, credit_waits):
            return False
        return self.read_next(now, queue)

    def read_next(self, now: int, queue: Queue) -> bool:
        """Reads the next block as `read_more` does, even if memory is full."""
        paged = paged_queue_of(queue)
        if paged is None:
            return False
        entered = False
        while paged.pages and not entered:
            page = paged.pages[0]
            entered = self._read_block(now, paged, page)
            paged.leave(page)
        if not entered and paged.tail:
            entered = self._take_tail(now, paged)
        if not paged.pages and not paged.tail:
            queue.paged = None
            self.store.trace.count("paging_ended")
        elif entered:
            self.touch(queue)
        return entered

    def on_idle(self, now: int, queue: Queue) -> bool:
        """Reads more after a dispatch that could deliver nothing; returns true if messages entered the queue.

        A non-destructive queue keeps its messages: its consumers read the files (PagedQueue.browse).
        """
        if not queue.paused and not queue.keeps_messages:
            for consumer in queue.consumers:
                if not consumer.browse_only and consumer.ready():
                    return self.read_more(now, queue, True)
        return False

    def read_through(self, now: int, queue: Queue, sequence: int) -> None:
        """Reads all pages that begin at or below `sequence`, at recovery: they were in memory before."""
        paged = paged_queue_of(queue)
        if paged is None:
            return
        while paged.pages and paged.pages[0].first <= sequence:
            page = paged.pages[0]
            self._read_block(now, paged, page)
            paged.leave(page)
        if not paged.pages and not paged.tail:
            queue.paged = None

    def _has_room(self, queue: Queue, paged: PagedQueue, credit_waits: bool) -> bool:
        size = queue.bytes - paged.bytes
        count = queue.message_count - paged.count
        account = queue.account
        count -= queue.scheduled_count
        if queue.scheduled_count > 0:
            size = min(size, account.max_read_bytes - 1)  # the size of scheduled messages is not known separately
        if count > 0 and (size >= account.max_read_bytes or count >= account.max_read_messages):
            return False
        if not within_prefetch(queue, account, count - queue.delivering_count):
            return False
        if credit_waits or count <= queue.delivering_count:
            return True
        if not paged.pages and not self.store.memory.full_for(account):
            return True
        return size < READY_BYTES and not self.store.memory.full_for(account)

    def _read_block(self, now: int, paged: PagedQueue, page: Page) -> bool:
        index = page.read
        while index < page.entries and page.is_finished(index):
            index += 1
        if index >= page.entries:
            page.read = page.entries
            return False
        block = page.block_of(index)
        queue = paged.queue
        entries = self.reader.read(queue, page, block)
        if entries is None:
            self.drop_damaged()
            return False
        page.read = page.end_of(block)
        entered: list[Reference] = []
        size = 0
        latest = _latest_of(queue, page)
        for at in range(index - page.starts[block], len(entries)):
            index = page.starts[block] + at
            entry = entries[at]
            if alive(page, index, entry, queue):
                if latest is not None and latest.message.id == entry.message.id:  # written by an earlier build
                    self._join(paged, latest, index, entry)
                    continue
                latest = self.reader.reference(queue, page, index, entry)
                self.store.memory.charge(latest)
                size += latest.size
                entered.append(latest)
        page.count_read(len(entered), size)
        self.count_outside(paged, -len(entered), -size)
        self._enter(now, queue, entered)
        return bool(entered)

    def _join(self, paged: PagedQueue, reference: PagedReference, index: int, entry: PageEntry) -> None:
        """Joins the entry to that of the same message before it: the two are one copy."""
        reference.join(index, entry.route_to)
        reference.page.count_read(1, entry.message.size)
        self.count_removed(paged, 1, entry.message.size)

    def _take_tail(self, now: int, paged: PagedQueue) -> bool:
        """Enqueues a part of the tail: no page is before it."""
        count = 0
        size = 0
        limit = BLOCK_BYTES
        while count < len(paged.tail) and count < TAIL_MESSAGES_A_TURN and size < limit:
            size += paged.tail[count].size
            count += 1
        entered = paged.tail[:count]
        paged.tail = paged.tail[count:]
        paged.forget_encoding()
        paged.tail_bytes -= size
        self.tail_bytes -= size
        self.count_outside(paged, -count, -size)
        self._enter(now, paged.queue, entered)
        return count > 0

    def _enter(self, now: int, queue: Queue, entered: list[Reference]) -> None:
        store = self.store
        special = queue.special
        replaced: list[Reference] = []
        for reference in entered:
            queue.enter(reference)
            if special is not None:
                older = special.entered(reference)
                if older is not None:
                    replaced.append(older)
                if older is reference:
                    continue
            if isinstance(reference, PagedReference):
                delivered = reference.page.deliveries.get(reference.index)
                if delivered is not None and delivered[1] * 1_000_000 > now:
                    store.scheduled.schedule(reference, delivered[1])
                    continue
            if queue.open_consumers == 0 and not queue.has_match(reference.message):
                store.dispatches.note_unattended(queue)
        store.discard(replaced)
        store.dispatches.mark_dirty(queue)

    # -- damaged pages --------------------------------------------------------------------------
    def drop_damaged(self) -> None:
        """Removes the messages of blocks that cannot be read, and reports each page once; the other blocks stay."""
        for damage in self.reader.take_damaged():
            if not damage.page.ended:
                self._drop_damaged(damage.queue, damage.page, damage.why)
        self.reader.take_damaged()  # the same blocks, read once more

    def _drop_damaged(self, queue: Queue, page: Page, why: str) -> None:
        batch = records.Batch()
        lost_ranges: list[tuple[int, int]] = []
        left = 0
        left_bytes = 0
        for block in range(page.block_of(page.read), len(page.starts)):
            if page.block_is_finished(block):
                continue
            entries = self.reader.read(queue, page, block)
            if entries is None:
                for start, end in page.unread_ranges(block, queue.log.released_through()):
                    lost_ranges.append((start, end))
                    if queue.leased and not queue.log.lost_whole(start, end):
                        queue.log.record_lost(queue.id, start, end, PAGE_FILE_DAMAGED, batch)
            for index in range(max(page.starts[block], page.read), page.end_of(block)):
                if entries is not None:
                    entry = entries[index - page.starts[block]]
                    if alive(page, index, entry, queue):
                        left += 1
                        left_bytes += entry.message.size
                elif not page.is_finished(index):
                    self.finish_entry(page, index)
        lost = page.unread - left
        lost_bytes = page.unread_bytes - left_bytes
        page.lose(lost, lost_bytes)
        paged = paged_queue_of(queue)
        if paged is not None:
            self.count_removed(paged, lost, lost_bytes)
            paged.leave(page)
            self.touch(queue)
        if page.live <= 0:
            self.done(page)
            if len(batch) > 0:
                batch.append_to(self.store.journal)
        else:
            self.store_page(page, batch)
        self.store.trace.event(
            "page_file_damaged",
            {"queue": queue.name, "messages": lost, "sequences": ranges_text(lost_ranges), "why": why},
        )

    # -- finished pages -------------------------------------------------------------------------
    def finished(self, reference: PagedReference) -> None:
        """Records that a paged message has left its queue for good (the caller writes its ACKS record)."""
        page = reference.page
        if page.ended or page.is_finished(reference.index):
            return
        for index in range(reference.index, reference.index + reference.entries):
            self.finish_entry(page, index)
        page.live -= reference.entries
        if page.live <= 0:
            self.done(page)

    def finish_entry(self, page: Page, index: int) -> None:
        """Sets the entry's bit and releases its body; the caller changes the counters."""
        page.finish(index)
        if page.bodies:
            body = page.bodies.pop(index, None)
            if body is not None:
                self.store.large.release(body)

    def done(self, page: Page) -> None:
        """Ends a page whose messages are all finished: its file is deleted when that is durable (`end_pages`)."""
        page.ended = True
        del self.pages[page.number]
        self.finished_pages.append(page)
        for body in page.bodies.values():
            self.store.large.release(body)
        page.bodies = {}

    def end_pages(self) -> None:
        """Appends PAGE_DONE for ended pages, behind the records that ended their last messages."""
        finished = self.finished_pages
        self.finished_pages = []
        for page in finished:
            writer = Writer()
            writer.int64(page.queue_id)
            writer.int64(page.number)
            lsn = self.store.journal.append(records.PAGE_DONE, writer.getvalue())
            self.deletable.append((lsn, page))

    def store_page(self, page: Page, batch: records.Batch) -> None:
        """Appends the batch with the page's state again, behind all older records about the page."""
        batch.add(records.PAGE, encode_page(page, []))
        page.lsn = batch.append_to(self.store.journal)

    def record_bytes(self) -> int:
        """Returns the approximate size of the page records in the journal."""
        return 512 * len(self.pages)

    def relocate(self, lsn: int, number: int) -> None:
        """Stores the page again, because the journal frees the segment with this PAGE record."""
        page = self.pages.get(number)
        if page is not None and page.lsn == lsn:
            self.store_page(page, records.Batch())


def _latest_of(queue: Queue, page: Page) -> PagedReference | None:
    """Returns the last reference that was read from the page, unless it has gone to a peer already."""
    references = queue.references
    if references:
        latest = references[len(references) - 1]
        if isinstance(latest, PagedReference) and latest.page is page:
            if latest.state == READY or (latest.state == DELIVERING and not latest.route_to):
                return latest
    return None
