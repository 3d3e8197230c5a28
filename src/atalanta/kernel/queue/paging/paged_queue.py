"""The part of a queue outside of memory: its pages in files, and the tail that becomes the next page."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from atalanta.kernel.memory.address_memory import UNLIMITED
from atalanta.kernel.queue.paging.page import write_entry
from atalanta.kernel.queue.paging.paged_messages import PagedMessages
from atalanta.kernel.queue.priorities import LEVELS
from atalanta.kernel.queue.reference import READY

if TYPE_CHECKING:
    from atalanta.kernel.memory.address_memory import Account
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.paging.page import Page
    from atalanta.kernel.queue.paging.reader import PageReader
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

# Bytes of a page read at once, and so the size of one read of a browser.
BLOCK_BYTES: Final = 128 * 1024
BROWSED_MAX: Final = 16  # blocks kept in memory for browsing consumers
TAIL_MESSAGES: Final = 1_000  # the most references of a tail that one call of `after` returns


class BrowsedBlock:
    """A block read for a browsing consumer: the rest of `found` is for the same batch of inputs."""

    def __init__(self, found: list[Reference], position: int) -> None:
        self.found = found
        self.at: int = 0
        self.position = position  # of the consumer, if it is not moved meanwhile


class PagedQueue(PagedMessages):
    """State of a queue that pages: `tail` takes new messages; `pages` have unread entries and come before the tail."""

    def __init__(self, queue: Queue, reader: PageReader) -> None:
        super().__init__()
        self.queue = queue
        self.reader = reader
        self.pages: deque[Page] = deque()
        self.tail: list[Reference] = []
        self.tail_bytes: int = 0
        self.page_end: int = 0  # at recovery: higher sequences belong to the tail
        self.id_max: int = 0
        self.touched: bool = False
        self.browsed: dict[QueueConsumer, BrowsedBlock] = {}  # of this batch of inputs
        # The next page's encoding: whole blocks and an open one, with the first `encoded` messages of the tail.
        self.blocks: list[bytes] = []
        self.starts: list[int] = []
        self.firsts: list[int] = []
        self.open: BytesWriter = BytesWriter()
        self.encoded: int = 0

    def leave(self, page: Page) -> None:
        """Takes the page out of `pages` when all its messages are in memory or gone."""
        if page in self.pages and (page.unread <= 0 or page.read >= page.entries):
            self.pages.remove(page)

    def index_in_tail(self, sequence: int) -> int:
        """Returns the index of the first reference of the tail with at least that sequence."""
        tail = self.tail
        low = 0
        high = len(tail)
        while low < high:
            middle = (low + high) // 2
            if tail[middle].sequence < sequence:
                low = middle + 1
            else:
                high = middle
        return low

    def encode_tail(self) -> None:
        """Encodes the messages that were added to the tail since the last call."""
        tail = self.tail
        out = self.open
        while self.encoded < len(tail):
            reference = tail[self.encoded]
            if len(out) == 0:
                self.starts.append(self.encoded)
                self.firsts.append(reference.sequence)
            write_entry(out, reference)
            self.encoded += 1
            if len(out) >= BLOCK_BYTES:
                self._close_block()
                out = self.open

    def take_blocks(self) -> list[bytes]:
        """Returns all encoded blocks; the next call of `encode_tail` starts a new page."""
        if len(self.open) > 0:
            self._close_block()
        blocks = self.blocks
        self.forget_encoding()
        return blocks

    def _close_block(self) -> None:
        self.blocks.append(self.open.getvalue())
        self.open = BytesWriter()

    def forget_encoding(self) -> None:
        """Drops the encoding, because the tail has changed elsewhere than at its end."""
        self.blocks = []
        self.starts = []
        self.firsts = []
        self.open = BytesWriter()
        self.encoded = 0

    def after(self, sequence: int) -> list[Reference]:
        """Returns messages outside of memory behind `sequence`, in order: at most one block, an empty list at the end.

        Messages of pages are copies, for reading only.
        """
        pages = self.pages
        reader = self.reader
        for number in range(first_behind(pages, sequence), len(pages)):
            page = pages[number]
            block = max(page.block_with(sequence + 1), page.block_of(page.read))
            while block < len(page.starts):
                found: list[Reference] = [
                    reference
                    for reference in reader.block(self.queue, page, block)
                    if reference.sequence > sequence
                ]
                if found:
                    return found
                block += 1
        low = self.index_in_tail(sequence + 1)
        return self.tail[low : low + TAIL_MESSAGES]

    def browse(self, consumer: QueueConsumer, now_ms: int) -> Reference | None:
        """Returns the next paged message for a browser, or for a consumer of a non-destructive queue.

        None with an advanced position: the consumer must call again. None with a position behind `last`: the end.
        """
        queue = self.queue
        consumer.position = max(consumer.position, queue.end())
        block = self._browsed_block(consumer)
        found = block.found
        chosen: Reference | None = None
        while block.at < len(found):
            reference = found[block.at]
            block.at += 1
            consumer.position = reference.sequence + 1
            message = reference.message
            if not consumer.browse_only and 0 < message.expiration <= now_ms:
                continue  # expires when it is read into memory, see housekeeping
            if consumer.selector is None or consumer.selector.matches(message):
                chosen = reference
                break
        if not found:
            consumer.position = max(consumer.position, self.last + 1)
        block.position = consumer.position
        if queue.priorities.mixed():
            # Messages that enter memory from now on were seen in their file, or have a higher sequence.
            consumer.cursors = [consumer.position] * LEVELS
        return chosen

    def _browsed_block(self, consumer: QueueConsumer) -> BrowsedBlock:
        """Returns the consumer's block, read once per batch of inputs: consumers take turns, at different positions."""
        block = self.browsed.get(consumer)
        if block is None or block.at >= len(block.found) or block.position != consumer.position:
            found = self.after(consumer.position - 1)
            block = BrowsedBlock(found, consumer.position)
            if consumer not in self.browsed and len(self.browsed) >= BROWSED_MAX:
                del self.browsed[next(iter(self.browsed))]
            self.browsed[consumer] = block
        return block


def paged_queue_of(queue: Queue) -> PagedQueue | None:
    """Returns the state of a queue that pages; None for other queues."""
    paged = queue.paged
    return paged if isinstance(paged, PagedQueue) else None


def behind_pages(queue: Queue, sequence: int) -> bool:
    """Returns true at recovery for a message of the tail: the queue pages, and all its pages are before the message."""
    paged = paged_queue_of(queue)
    return paged is not None and sequence > paged.page_end


def first_behind(pages: deque[Page], sequence: int) -> int:
    """Returns the index of the first page that ends behind `sequence` (pages ascend); their number if none does."""
    low = 0
    high = len(pages)
    while low < high:
        middle = (low + high) // 2
        if pages[middle].last <= sequence:
            low = middle + 1
        else:
            high = middle
    return low


def within_prefetch(queue: Queue, account: Account, ready: int) -> bool:
    """Returns true if more may be read while `ready` messages wait for a consumer (QueueImpl.needsDepage).

    Reading is by block, so the limit may be exceeded by one block.
    """
    if ready >= account.prefetch_messages:
        return False
    left = account.prefetch_bytes
    if left < UNLIMITED:
        references = queue.references
        for index in range(queue.index_of(queue.cursor), len(references)):
            if references[index].state == READY:
                left -= references[index].size
                if left <= 0:
                    return False
    return True
