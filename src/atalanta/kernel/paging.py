"""Queues larger than memory: what comes while an address (or the node) is full goes to page files.

See docs/decisions/0005-paging.md. A message is first as safe as any other: its MESSAGE record is in the journal before its
sender is answered. Then, instead of entering a full queue, it waits in the queue's tail; when that is as large as a
page it is written to a file at once, and a PAGE record takes the place of the MESSAGE records. Consumers get
pages back block by block, always the oldest; a file goes when nothing in it is alive.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.kernel import records
from atalanta.kernel.account import PAGE
from atalanta.kernel.buffer import DecodeError, Writer
from atalanta.kernel.paging_page import Entry, Page, decode_block, encode_page
from atalanta.kernel.paging_queue import BLOCK_BYTES, PagedQueue
from atalanta.kernel.ports import PageError
from atalanta.kernel.reference import PagedReference, Reference
from atalanta.kernel.story import tell

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.ports import Pages
    from atalanta.kernel.queue import Queue

# A page is at least so large, or has so many messages, while memory is short.
TAIL_BYTES_MIN: Final = 16 * 1024
TAIL_MESSAGES_MIN: Final = 64
# Tails of all queues may take this share of the node's memory before they are written early.
TAIL_SHARE: Final = 4
# Pages that wait for the disk: above it senders get no credits.
UNWRITTEN_BYTES_MAX: Final = 64 << 20
# What is kept ready for consumers while memory is not short; a hungry consumer gets up to max-read-page-*.
READY_BYTES: Final = 4 * BLOCK_BYTES
TAIL_MESSAGES_A_TURN: Final = 1_000
BLOCKS_CACHED: Final = 4


class Paging:
    """The paging of one broker. `pages`: every page with something alive, by number."""

    def __init__(self, broker: Broker, files: Pages) -> None:
        self.broker = broker
        self.files = files
        self.pages: dict[int, Page] = {}
        self.failed: str | None = None
        self.tail_bytes: int = 0
        self.unwritten_bytes: int = 0
        self.written: int = 0
        # (lsn of its record, number, bytes) of pages that are not known to be durable.
        self.unwritten: deque[tuple[int, int, int]] = deque()
        # Files that go when the record that says so is durable: (lsn, number).
        self.doomed: deque[tuple[int, int]] = deque()
        self.touched: list[Queue] = []
        self._cache: dict[tuple[int, int], list[Reference]] = {}

    # -- going out ------------------------------------------------------------------------------
    def start(self, queue: Queue) -> None:
        """The queue's address or the node is full: what comes from here on waits outside."""
        if queue.paged is None and queue.account.policy == PAGE and queue.may_page():
            queue.paged = PagedQueue(self, queue)
            self.broker.trace.count("paging_started")

    def take(self, reference: Reference) -> None:
        """A stable message for a queue that pages."""
        queue = reference.queue
        paged = queue.paged
        assert paged is not None
        queue.count_in(reference)
        paged.tail.append(reference)
        paged.tail_bytes += reference.size
        self.tail_bytes += reference.size
        self._outside(paged, 1, reference.size)
        paged.last = reference.sequence
        self.touch(queue)

    def _outside(self, paged: PagedQueue, count: int, size: int) -> None:
        """So much more (less) of the queue is not in its list."""
        paged.count += count
        paged.bytes += size
        account = paged.queue.account
        account.paged_messages += count
        account.paged_bytes += size
        if count > 0 and account.page_full():
            self.broker.memory.refuse(account)

    def touch(self, queue: Queue) -> None:
        """Look at the queue in this turn."""
        paged = queue.paged
        if paged is not None and not paged.touched:
            paged.touched = True
            self.touched.append(queue)

    def turn(self, now: int) -> None:
        """Once a turn, before messages are handed out: write what is enough for a page, read what is needed."""
        work = self.touched
        self.touched = []
        for queue in work:
            paged = queue.paged
            if paged is None:
                continue
            paged.touched = False
            if queue.deleted:
                continue
            if self._wanted(queue, paged) and not queue.paused:
                self.refill(now, queue, False)
            if queue.paged is None:
                continue
            paged.encode_tail()
            if self._page_is_due(paged):
                self._write(paged)
        if self.touched:
            self.broker.wake(now)

    def _wanted(self, queue: Queue, paged: PagedQueue) -> bool:
        if paged.wanted or queue.consumer_count() > 0:
            return True
        return not paged.pages and not self.broker.memory.full_for(queue.account)

    def _page_is_due(self, paged: PagedQueue) -> bool:
        size = paged.tail_bytes
        account = paged.queue.account
        memory = self.broker.memory
        page_bytes = min(account.page_size_bytes, max(account.limit_bytes // 2, TAIL_BYTES_MIN))
        if size >= page_bytes:
            return True
        limit_messages = min(account.limit_messages, memory.limit_messages)
        if len(paged.tail) >= max(limit_messages // 2, TAIL_MESSAGES_MIN):
            return True
        short = self.tail_bytes * TAIL_SHARE >= memory.limit_bytes
        return short and size >= TAIL_BYTES_MIN

    def _write(self, paged: PagedQueue) -> None:
        """The whole tail becomes a page; its messages leave memory."""
        broker = self.broker
        tail = paged.tail
        page = Page(broker.take_message_id(), paged.queue.id)
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
        for reference in tail:
            message_id = reference.message.id
            page.id_min = min(page.id_min, message_id)
            page.id_max = max(page.id_max, message_id)
            if reference.durable:
                ids.append(message_id)
                page.durable_count += 1
                page.durable_bytes += reference.size
        size = self.files.write(page.number, paged.take_blocks())
        page.lsn = broker.journal.append(records.PAGE, encode_page(page, ids))
        for reference in tail:
            if broker.trace.on:
                tell(broker.trace, "story_paged", reference.message, paged.queue.name)
            broker.drop(reference)
        self.pages[page.number] = page
        paged.pages.append(page)
        paged.tail = []
        self.tail_bytes -= paged.tail_bytes
        paged.tail_bytes = 0
        self.unwritten.append((page.lsn, page.number, size))
        self.unwritten_bytes += size
        self.written += 1
        broker.memory.behind = self.unwritten_bytes >= UNWRITTEN_BYTES_MAX
        broker.trace.count("pages_written")

    def on_durable(self, lsn: int) -> None:
        """Everything up to `lsn` is on disk."""
        while self.unwritten and self.unwritten[0][0] <= lsn:
            _, number, size = self.unwritten.popleft()
            self.files.settled(number)
            self.unwritten_bytes -= size
        memory = self.broker.memory
        if memory.behind and self.unwritten_bytes < UNWRITTEN_BYTES_MAX:
            memory.behind = False
            memory.freed = True
        while self.doomed and self.doomed[0][0] <= lsn:
            self.files.delete(self.doomed.popleft()[1])

    # -- coming back ----------------------------------------------------------------------------
    def refill(self, now: int, queue: Queue, hungry: bool) -> bool:
        """Bring the next block (or a part of the tail) into the queue if there is room; whether anything came.

        `hungry`: a consumer has credit, and what is in memory is not for it.
        """
        paged = queue.paged
        if paged is None or self.failed is not None or not self._room(queue, paged, hungry):
            return False
        came = False
        while paged.pages and not came and self.failed is None:
            came = self._read_block(now, paged, paged.pages[0])
            if paged.pages[0].unread == 0:
                paged.pages.popleft()
        if not came and paged.tail:
            came = self._take_tail(now, paged)
        if not paged.pages and not paged.tail:
            queue.paged = None
            self.broker.trace.count("paging_ended")
        elif came:
            self.touch(queue)
        return came

    def on_idle(self, now: int, queue: Queue) -> bool:
        """Nothing more of what is in memory can be handed out; whether there is something now."""
        if not queue.paused:
            for consumer in queue.consumers:
                if not consumer.browse_only and consumer.ready():
                    return self.refill(now, queue, True)
        return False

    def _room(self, queue: Queue, paged: PagedQueue, hungry: bool) -> bool:
        size = queue.bytes - paged.bytes
        count = queue.message_count - paged.count
        account = queue.account
        if count > 0 and (size >= account.max_read_bytes or count >= account.max_read_messages):
            return False
        if hungry or count == queue.delivering_count:
            return True
        if not paged.pages and not self.broker.memory.full_for(account):
            return True
        return size < READY_BYTES and not self.broker.memory.full_for(account)

    def _read_block(self, now: int, paged: PagedQueue, page: Page) -> bool:
        index = page.read
        if index >= page.entries:
            page.unread = 0
            return False
        block = page.block_of(index)
        entries = self.read(page, block)
        if entries is None:
            return False
        queue = paged.queue
        page.read = page.end_of(block)
        came: list[Reference] = []
        size = 0
        for at in range(index - page.starts[block], len(entries)):
            index = page.starts[block] + at
            entry = entries[at]
            if alive(page, index, entry, queue):
                reference = self._reference(queue, page, index, entry)
                self.broker.memory.charge(reference)
                size += reference.size
                came.append(reference)
        page.unread -= len(came)
        page.unread_bytes -= size
        if page.read == page.entries:
            page.unread = 0
            page.unread_bytes = 0
        self._outside(paged, -len(came), -size)
        self._enter(now, queue, came)
        return bool(came)

    def read(self, page: Page, block: int) -> list[Entry] | None:
        """Entries of a block; None when it cannot be read: the node then has failed."""
        try:
            entries = decode_block(self.files.read(page.number, block))
        except (PageError, DecodeError) as error:
            self.failed = str(error)
            return None
        if len(entries) != page.end_of(block) - page.starts[block]:
            self.failed = f"page {page.number}: block {block} has {len(entries)} entries"
            return None
        return entries

    def _reference(self, queue: Queue, page: Page, index: int, entry: Entry) -> PagedReference:
        reference = PagedReference(
            entry.message, queue, entry.sequence, entry.route_to, page, index
        )
        reference.durable = entry.durable
        reference.delivery_count = page.deliveries.get(index, entry.delivery_count)
        return reference

    def _take_tail(self, now: int, paged: PagedQueue) -> bool:
        """No page lies before the tail: it may enter directly."""
        count = 0
        size = 0
        limit = BLOCK_BYTES
        while count < len(paged.tail) and count < TAIL_MESSAGES_A_TURN and size < limit:
            size += paged.tail[count].size
            count += 1
        came = paged.tail[:count]
        paged.tail = paged.tail[count:]
        paged.forget_encoding()
        paged.tail_bytes -= size
        self.tail_bytes -= size
        self._outside(paged, -count, -size)
        self._enter(now, paged.queue, came)
        return count > 0

    def _enter(self, now: int, queue: Queue, came: list[Reference]) -> None:
        broker = self.broker
        for reference in came:
            queue.enter(reference)
            if queue.open_consumers == 0 and not queue.has_match(reference.message):
                broker.note_unattended(queue)
        broker.mark_dirty(queue)

    # -- finished -------------------------------------------------------------------------------
    def finished(self, reference: PagedReference) -> None:
        """A message that came from a page has left its queue for good (its ACKS record is written by who knows)."""
        page = reference.page
        if page.gone or page.is_finished(reference.index):
            return
        page.finish(reference.index)
        page.live -= 1
        if page.live <= 0:
            self.done(page)

    def done(self, page: Page) -> None:
        """Nothing of the page is alive: the file goes when that is durable."""
        page.gone = True
        del self.pages[page.number]
        writer = Writer()
        writer.int64(page.queue_id)
        writer.int64(page.number)
        lsn = self.broker.journal.append(records.PAGE_DONE, writer.getvalue())
        self.doomed.append((lsn, page.number))

    def store(self, page: Page) -> None:
        """Its state anew, behind everything older that says something of it."""
        page.lsn = self.broker.journal.append(records.PAGE, encode_page(page, []))

    def relocate(self, lsn: int, number: int) -> None:
        """The journal gives up the segment with this PAGE record."""
        page = self.pages.get(number)
        if page is not None and page.lsn == lsn:
            self.store(page)

    def clear(self, queue: Queue) -> int:
        """All that is outside goes (purge); returns how many messages. Who calls has journalled the tail's ids."""
        paged = queue.paged
        if paged is None:
            return 0
        queue.paged = None
        dropped = paged.count
        queue.message_count -= paged.count
        queue.bytes -= paged.bytes
        self.tail_bytes -= paged.tail_bytes
        self._outside(paged, -paged.count, -paged.bytes)
        for reference in paged.tail:
            self.broker.drop(reference)
        for page in paged.pages:
            for index in range(page.read, page.entries):
                if not page.is_finished(index):
                    page.finish(index)
            page.live -= page.unread
            page.unread = 0
            page.read = page.entries
            if page.live <= 0:
                self.done(page)
            else:
                self.store(page)
        return dropped

    def forget(self, queue: Queue) -> None:
        """The queue is deleted (its record is written): nothing of it is alive."""
        paged = queue.paged
        if paged is not None:
            queue.paged = None
            self.tail_bytes -= paged.tail_bytes
            self._outside(paged, -paged.count, -paged.bytes)
            for reference in paged.tail:
                self.broker.drop(reference)
        for page in list(self.pages.values()):
            if page.queue_id == queue.id:
                self.done(page)

    # -- looking --------------------------------------------------------------------------------
    def after(self, queue: Queue, sequence: int) -> list[Reference]:
        """Messages outside of memory behind `sequence`, in order: at most a block of them, none at the end.

        Pages' are copies, to be looked at only.
        """
        paged = queue.paged
        if paged is None:
            return []
        for page in paged.pages:
            if page.last <= sequence:
                continue
            block = max(page.block_with(sequence + 1), page.block_of(page.read))
            while block < len(page.starts):
                found = [
                    reference
                    for reference in self._block(queue, page, block)
                    if reference.sequence > sequence
                ]
                if found or self.failed is not None:
                    return found
                block += 1
        tail = paged.tail
        low = 0
        high = len(tail)
        while low < high:
            middle = (low + high) // 2
            if tail[middle].sequence <= sequence:
                low = middle + 1
            else:
                high = middle
        return tail[low : low + TAIL_MESSAGES_A_TURN]

    def _block(self, queue: Queue, page: Page, block: int) -> list[Reference]:
        key = (page.number, block)
        found = self._cache.get(key)
        if found is None:
            entries = self.read(page, block)
            if entries is None:
                return []
            found = []
            for at, entry in enumerate(entries):
                if alive(page, page.starts[block] + at, entry, queue):
                    found.append(self._reference(queue, page, page.starts[block] + at, entry))
            if len(self._cache) >= BLOCKS_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = found
        return [
            reference
            for reference in found
            if isinstance(reference, PagedReference) and reference.index >= page.read
        ]


def alive(page: Page, index: int, entry: Entry, queue: Queue) -> bool:
    """Is the entry still to be handed out?"""
    if page.is_finished(index) or entry.sequence <= queue.acked_through or index in page.taken:
        return False
    return entry.durable or not page.old
