"""Removal of messages outside of memory: by an operator, by a log view, or with their queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal import records
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.queue.paging.paged_reference import PagedReference

if TYPE_CHECKING:
    from atalanta.kernel.queue.paging.page import Page
    from atalanta.kernel.queue.paging.paged_queue import PagedQueue
    from atalanta.kernel.queue.paging.paging import Paging
    from atalanta.kernel.queue.paging.retained_messages import RetainedMessages
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference


def clear(paging: Paging, queue: Queue) -> int:
    """Removes all messages outside of memory (purge); returns their number. The caller has journalled the ids."""
    paged = paged_queue_of(queue)
    if paged is None:
        return 0
    queue.paged = None
    dropped = paged.count
    paging.tail_bytes -= paged.tail_bytes
    paging.count_removed(paged, paged.count, paged.bytes)
    for reference in paged.tail:
        paging.store.drop(reference)
    for page in paged.pages:
        for index in range(page.read, page.entries):
            if not page.is_finished(index):
                paging.finish_entry(page, index)
        page.live -= page.unread
        page.unread = 0
        page.read = page.entries
        if page.live <= 0:
            paging.done(page)
        else:
            paging.store_page(page, records.Batch())
    return dropped


def drop_through(
    paging: Paging, queue: Queue, sequence: int, retained: RetainedMessages | None
) -> int:
    """Removes messages outside of memory up to `sequence`, durably (log view); returns their number.

    `retained` takes them over, if the queue retains them.
    """
    paged = paged_queue_of(queue)
    if paged is None:
        return 0
    before = paged.count
    while paged.pages and paged.pages[0].first <= sequence:
        page = paged.pages[0]
        count = page.unread
        size = page.unread_bytes
        _drop_entries(paging, queue, paged, page, sequence, retained is None)
        if retained is not None:
            retained.take_page(page, count - page.unread, size - page.unread_bytes)
        if page.unread > 0:
            break
        paged.leave(page)
        if page.live <= 0 and not page.ended:
            paging.done(page)
    for reference in paging.take_from_tail(paged, sequence):
        paging.count_removed(paged, 1, reference.size)
        if retained is None:
            paging.store.drop(reference)
        else:
            retained.keep(reference)
    paging.touch(queue)
    return before - paged.count


def drop_one(paging: Paging, queue: Queue, reference: Reference) -> None:
    """Removes one message outside of memory for good; the caller writes its ACKS record."""
    paged = paged_queue_of(queue)
    if paged is None:
        return
    if isinstance(reference, PagedReference):
        entries = reference.entries
        paging.count_removed(paged, entries, entries * reference.size)
        reference.page.count_read(entries, entries * reference.size)
        paging.finished(reference)
        paged.leave(reference.page)
    else:
        paged.tail.remove(reference)
        paged.forget_encoding()
        paged.tail_bytes -= reference.size
        paging.tail_bytes -= reference.size
        paging.count_removed(paged, 1, reference.size)
        paging.store.drop(reference)
    paging.touch(queue)


def _drop_entries(
    paging: Paging, queue: Queue, paged: PagedQueue, page: Page, sequence: int, finish: bool
) -> None:
    """Removes the unread entries up to `sequence` from the queue; `finish`: from the page, too."""
    count = page.unread
    size = page.unread_bytes
    read = page.entries
    if page.last > sequence:
        found = _upto(paging, queue, page, sequence)
        paging.drop_damaged()
        count = 0
        size = 0
        read = page.read
        for reference in found:
            count += reference.entries
            size += reference.entries * reference.size
            read = reference.index + reference.entries
    if finish:
        for index in range(page.read, read):
            if not page.is_finished(index):
                paging.finish_entry(page, index)
        page.live -= count
    page.read = read
    page.unread -= count
    page.unread_bytes -= size
    paging.count_removed(paged, count, size)


def _upto(paging: Paging, queue: Queue, page: Page, sequence: int) -> list[PagedReference]:
    """Returns the unread entries of the page up to `sequence`."""
    found: list[PagedReference] = []
    block = page.block_of(page.read)
    while block < len(page.starts) and page.firsts[block] <= sequence:
        for reference in paging.reader.block(queue, page, block):
            if reference.sequence <= sequence:
                found.append(reference)
        block += 1
    return found


def forget(paging: Paging, queue: Queue) -> None:
    """Ends all pages of a deleted queue, after its record was written."""
    paged = paged_queue_of(queue)
    if paged is not None:
        queue.paged = None
        paging.tail_bytes -= paged.tail_bytes
        paging.count_outside(paged, -paged.count, -paged.bytes)
        for reference in paged.tail:
            paging.store.drop(reference)
    for page in list(paging.pages.values()):
        if page.queue_id == queue.id:
            paging.done(page)
