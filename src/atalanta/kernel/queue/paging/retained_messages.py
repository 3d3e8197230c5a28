"""The retained messages of a queue: acknowledged by its log-view reader, and kept for a replay.

They have left the queue: no consumer, browser, counter or limit sees them. The journal still holds them, as MESSAGE
records or in page files; pages that were written before the acknowledgement are taken over as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.log_state import PAGE_FILE_DAMAGED
from atalanta.kernel.queue.paging.paged_queue import (
    TAIL_MESSAGES,
    PagedQueue,
    first_behind,
    paged_queue_of,
)
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from atalanta.kernel.queue.paging.retained_ranges import RetainedRange, RetainedRanges
from atalanta.kernel.queue.reference import DONE

if TYPE_CHECKING:
    from atalanta.kernel.queue.paging.page import Page
    from atalanta.kernel.queue.paging.paging import Paging
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference


class RetainedMessages(RetainedRanges):
    """The messages (`released_through`, acknowledged sequence]. `kept` holds them: a tail, and the pages before it."""

    def __init__(self, paging: Paging, queue: Queue) -> None:
        super().__init__(queue.log.acked_through)
        self.paging = paging
        self.store = paging.store
        self.queue = queue
        self.kept = PagedQueue(queue, paging.reader)
        self.arrived: int = 0  # messages and their bytes, since the last range
        self.arrived_bytes: int = 0

    # -- messages arrive ------------------------------------------------------------------------
    def follows(self, reference: Reference) -> bool:
        """Returns true if the message is behind all that is kept, and before those outside of memory.

        A message that a prepared branch held back in memory may not be: then it cannot be kept in order.
        """
        if isinstance(reference, PagedReference):
            return True
        paged = paged_queue_of(self.queue)
        if paged is not None:
            first = paged.pages[0].first if paged.pages else paged.tail[0].sequence if paged.tail else 0
            if 0 < first < reference.sequence:
                return False
        tail = self.kept.tail
        last = tail[len(tail) - 1].sequence if tail else self.last_of_pages()
        return reference.sequence > last

    def keep(self, reference: Reference) -> None:
        """Keeps a message that has left its queue; it is no longer charged to memory."""
        self.store.memory.release(reference)
        self.arrived += 1
        self.arrived_bytes += reference.size
        if isinstance(reference, PagedReference):
            self.add_page(reference.page)
            return
        large = reference.message.large
        if large is not None:
            self.arrived_bytes += large.size
        reference.state = DONE
        self.paging.add_to_tail(self.kept, reference)
        if self.paging.page_is_due(self.kept):
            self._write()

    def add_page(self, page: Page) -> None:
        """Takes a page over whose first messages are acknowledged; the queue may still need the others."""
        pages = self.kept.pages
        if pages and pages[len(pages) - 1] is page:
            return
        if self.kept.tail:
            self._write()
        pages.append(page)
        for body in page.bodies.values():
            self.arrived_bytes += body.size

    def take_page(self, page: Page, count: int, size: int) -> None:
        """Takes a page over of which `count` messages of `size` bytes were acknowledged outside of memory."""
        self.add_page(page)
        self.arrived += count
        self.arrived_bytes += size

    def last_of_pages(self) -> int:
        """Returns the last sequence of the pages, 0 without pages."""
        pages = self.kept.pages
        return pages[len(pages) - 1].last if pages else 0

    def close_range(self, at_ms: int, end: int, merged_bytes: int) -> None:
        """Ends the range of the messages that arrived since the last call."""
        added = RetainedRange(at_ms, end, self.arrived, self.arrived_bytes)
        self.arrived = 0
        self.arrived_bytes = 0
        self.add_range(added, merged_bytes)

    def _write(self) -> None:
        """Writes the tail as a page."""
        tail = self.kept.tail
        self.paging.write_tail(self.kept).hand_over()
        for reference in tail:
            self._drop(reference)

    # -- recovery -------------------------------------------------------------------------------
    def take_restored(self, reference: Reference) -> None:
        """Takes a message over at recovery, in any order."""
        reference.state = DONE
        self.paging.add_to_tail(self.kept, reference)

    def end_restore(self) -> None:
        """Puts the messages of the recovery in their order."""
        self.kept.tail.sort(key=_by_sequence)
        self.arrived_bytes = 0

    # -- reading --------------------------------------------------------------------------------
    def after(self, sequence: int) -> list[Reference]:
        """Returns retained messages behind `sequence`, in order: at most one block, an empty list at the end."""
        sequence = max(sequence, self.released_through)
        pages = self.kept.pages
        for number in range(first_behind(pages, sequence), len(pages)):
            page = pages[number]
            block = page.block_with(sequence + 1)
            while block < len(page.starts):
                found: list[Reference] = [
                    reference for reference in self._block(page, block) if reference.sequence > sequence
                ]
                if found:
                    return found
                block += 1
        low = self.kept.index_in_tail(sequence + 1)
        return self.kept.tail[low : low + TAIL_MESSAGES]

    def sequences(self) -> list[int]:
        """Returns the sequences of all retained messages (reads every page: for tests and the simulator)."""
        sequences: list[int] = []
        found = self.after(self.released_through)
        while found:
            sequences += [reference.sequence for reference in found]
            found = self.after(sequences[len(sequences) - 1])
        return sequences

    def _block(self, page: Page, block: int) -> list[PagedReference]:
        """Returns the retained messages of a block. Those of a damaged block count as lost."""
        if page.ended or page.block_is_finished(block):
            return []
        queue = self.queue
        reader = self.paging.reader
        end = queue.log.acked_through
        entries = reader.read(queue, page, block)
        if entries is None:
            first, last = page.firsts[block], min(page.last_of(block), end)
            if not queue.log.lost_whole(first, last):
                queue.log.add_lost(first, last, PAGE_FILE_DAMAGED)
            return []
        found: list[PagedReference] = []
        for at, entry in enumerate(entries):
            index = page.starts[block] + at
            if not page.is_finished(index) and self.released_through < entry.sequence <= end:
                if entry.durable or not page.old:
                    found.append(reader.reference(queue, page, index, entry))
        return found

    # -- messages are released ------------------------------------------------------------------
    def release(self, end: int) -> None:
        """Removes the messages up to `end`. The caller makes the new state durable."""
        kept = self.kept
        while kept.pages and kept.pages[0].last <= end:
            page = kept.pages.popleft()
            if not page.ended:
                self.paging.done(page)
        if kept.pages and kept.pages[0].first <= end:
            self._release_part(kept.pages[0], end)
        for reference in self.paging.take_from_tail(kept, end):
            self._drop(reference)
        self.release_ranges(end)

    def _release_part(self, page: Page, end: int) -> None:
        block = page.block_with(self.released_through + 1)
        while block < len(page.starts) and page.firsts[block] <= end and not page.ended:
            for reference in self._block(page, block):
                if reference.sequence <= end:
                    self.paging.finished(reference)
            block += 1

    def _drop(self, reference: Reference) -> None:
        """Ends the tail's part in a message."""
        large = reference.message.large
        if large is not None:
            self.store.large.release(large)
        if reference.durable:
            self.store.unstore(reference)


def retained_of(queue: Queue) -> RetainedMessages | None:
    """Returns the retained messages of a queue; None without a retention."""
    retained = queue.log.retained
    return retained if isinstance(retained, RetainedMessages) else None


def _by_sequence(reference: Reference) -> int:
    return reference.sequence
