"""What of one queue is not in memory, or soon will not be: pages in files, and the tail that becomes the next page."""

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

# What is read from a page at once, and so what one look of a browser may take.
BLOCK_BYTES: Final = 128 * 1024
LOOKS_MAX: Final = 16  # kept for those who look: so many blocks are in memory then


class Look:
    """What somebody who takes nothing away was shown of a block: the rest of `found` is for the same turn."""

    def __init__(self, found: list[Reference], position: int) -> None:
        self.found = found
        self.at: int = 0
        self.position = position  # of the consumer, unless it was moved meanwhile


class PagedQueue:
    """A queue in this state takes new messages at `tail`; `pages` have unread entries and come before it.

    `count` and `bytes` are of both, and are contained in the queue's own. `wanted`: somebody who is no consumer needs
    the messages in memory (redistribution). `last` is the last sequence of all.
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
        self.page_end: int = 0  # at a restart: what has a higher sequence is the tail's
        self.id_max: int = 0
        self.wanted: bool = False
        self.touched: bool = False
        self.looks: dict[Consumer, Look] = {}  # of this turn
        # The coming page as far as it is encoded: whole blocks and an open one; `encoded` of the tail are in them.
        self.blocks: list[bytes] = []
        self.starts: list[int] = []
        self.firsts: list[int] = []
        self.open: BytesWriter = BytesWriter()
        self.encoded: int = 0

    def request(self) -> None:
        """The messages are needed in memory by a reader that is no consumer (redistribution)."""
        self.wanted = True

    def place_in_tail(self, sequence: int) -> int:
        """Index of the first reference of the tail with at least that sequence."""
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
        """Bring the encoding up to date; work is as much as came in since."""
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
        """All that is encoded; the encoding begins anew."""
        if len(self.open) > 0:
            self._close_block()
        blocks = self.blocks
        self.forget_encoding()
        return blocks

    def _close_block(self) -> None:
        self.blocks.append(self.open.getvalue())
        self.open = BytesWriter()

    def forget_encoding(self) -> None:
        """The tail has changed elsewhere than at its end."""
        self.blocks = []
        self.starts = []
        self.firsts = []
        self.open = BytesWriter()
        self.encoded = 0

    def browse(self, consumer: Consumer, now_ms: int) -> Reference | None:
        """The next message for one who takes none away (a browser, or any consumer of a non-destructive queue) and
        has seen what is in memory; None and a further position when it must look again, or one behind `last` if
        there is none.
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
                continue  # it goes when it comes into memory, see housekeeping
            if consumer.selector is None or consumer.selector.matches(message):
                chosen = reference
                break
        if not found:
            consumer.position = max(consumer.position, self.last + 1)
        look.position = consumer.position
        if queue.priorities.mixed():
            # What comes into memory from now on was seen in its file, or has a higher place.
            consumer.cursors = [consumer.position] * LEVELS
        return chosen

    def _look(self, consumer: Consumer) -> Look:
        """A block is read once a turn for each of them, not once a message: they take turns, at different places."""
        look = self.looks.get(consumer)
        if look is None or look.at >= len(look.found) or look.position != consumer.position:
            found = self.paging.reader.after(self.queue, consumer.position - 1)
            look = Look(found, consumer.position)
            if consumer not in self.looks and len(self.looks) >= LOOKS_MAX:
                del self.looks[next(iter(self.looks))]
            self.looks[consumer] = look
        return look


def within_prefetch(queue: Queue, account: Account, ready: int) -> bool:
    """Whether more may be read while `ready` messages wait in memory for a consumer (QueueImpl.needsDepage).

    What is read at once is a block: that much more than the limit there may be.
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
