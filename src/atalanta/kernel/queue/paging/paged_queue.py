"""The part of a queue outside of memory: its pages in files, and the tail that becomes the next page."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from atalanta.kernel.memory.address_memory import UNLIMITED
from atalanta.kernel.queue.paging.page import write_entry
from atalanta.kernel.queue.priorities import LEVELS
from atalanta.kernel.queue.reference import READY

if TYPE_CHECKING:
    from atalanta.kernel.memory.address_memory import Account
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.paging.page import Page
    from atalanta.kernel.queue.paging.paging import Paging
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

# Bytes of a page read at once, and so the size of one read of a browser.
BLOCK_BYTES: Final = 128 * 1024
LOOKS_MAX: Final = 16  # blocks kept in memory for browsing consumers


class Look:
    """A block read for a browsing consumer: the rest of `found` is for the same batch of inputs."""

    def __init__(self, found: list[Reference], position: int) -> None:
        self.found = found
        self.at: int = 0
        self.position = position  # of the consumer, if it is not moved meanwhile


class PagedQueue:
    """State of a queue that pages: `tail` takes new messages; `pages` have unread entries and come before the tail.

    `count` and `bytes` are of pages and tail, and are part of the queue's own. `wanted`: redistribution needs the
    messages in memory. `last` is the highest sequence.
    """

    def __init__(self, paging: Paging, queue: Queue) -> None:
        self.paging = paging
        self.queue = queue
        self.pages: deque[Page] = deque()
        self.tail: list[Reference] = []
        self.tail_bytes: int = 0
        self.count: int = 0
        self.bytes: int = 0
        self.last: int = 0
        self.page_end: int = 0  # at recovery: higher sequences belong to the tail
        self.id_max: int = 0
        self.wanted: bool = False
        self.touched: bool = False
        self.looks: dict[Consumer, Look] = {}  # of this batch of inputs
        # The next page's encoding: whole blocks and an open one, with the first `encoded` messages of the tail.
        self.blocks: list[bytes] = []
        self.starts: list[int] = []
        self.firsts: list[int] = []
        self.open: BytesWriter = BytesWriter()
        self.encoded: int = 0

    def request(self) -> None:
        """Requests the messages in memory for a reader that is no consumer (redistribution)."""
        self.wanted = True

    def place_in_tail(self, sequence: int) -> int:
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

    def browse(self, consumer: Consumer, now_ms: int) -> Reference | None:
        """Returns the next paged message for a browser, or for a consumer of a non-destructive queue.

        None with an advanced position: the consumer must call again. None with a position behind `last`: the end.
        """
        queue = self.queue
        consumer.position = max(consumer.position, queue.end())
        look = self._look(consumer)
        found = look.found
        chosen: Reference | None = None
        while look.at < len(found):
            reference = found[look.at]
            look.at += 1
            consumer.position = reference.sequence + 1
            message = reference.message
            if not consumer.browse_only and 0 < message.expiration <= now_ms:
                continue  # expires when it is read into memory, see housekeeping
            if consumer.selector is None or consumer.selector.matches(message):
                chosen = reference
                break
        if not found:
            consumer.position = max(consumer.position, self.last + 1)
        look.position = consumer.position
        if queue.priorities.mixed():
            # Messages that enter memory from now on were seen in their file, or have a higher sequence.
            consumer.cursors = [consumer.position] * LEVELS
        return chosen

    def _look(self, consumer: Consumer) -> Look:
        """Returns the consumer's block, read once per batch of inputs: consumers take turns, at different positions."""
        look = self.looks.get(consumer)
        if look is None or look.at >= len(look.found) or look.position != consumer.position:
            found = self.paging.reader.after(self.queue, consumer.position - 1)
            look = Look(found, consumer.position)
            if consumer not in self.looks and len(self.looks) >= LOOKS_MAX:
                del self.looks[next(iter(self.looks))]
            self.looks[consumer] = look
        return look


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
