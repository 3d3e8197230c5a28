"""Page files of last values, most of whose entries have been replaced: neighbours go into one new file.

Without this a value that is seldom replaced would keep a whole file on the disk, and there may be as many as values.
The new page and the end of the old ones stand in one record, so that a restart finds each message once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from atalanta.kernel import records
from atalanta.kernel.buffer import Writer
from atalanta.kernel.paging_page import Page, write_entry
from atalanta.kernel.paging_queue import BLOCK_BYTES

if TYPE_CHECKING:
    from atalanta.kernel.paging import Paging
    from atalanta.kernel.paging_queue import PagedQueue
    from atalanta.kernel.queue import Queue
    from atalanta.kernel.reference import PagedReference

PAGES_A_TURN: Final = 4
SHARE: Final = 2  # of a page: what is put together takes no more


def merge(paging: Paging, queue: Queue, paged: PagedQueue) -> None:
    """Once a turn, for a queue of which a page has become sparse: put some together, if that is worth a file."""
    run = _run(paged)
    if not run:
        paged.sparse = False
        return
    found: list[PagedReference] = []
    for page in run:
        for block in range(len(page.starts)):
            if _has_any(page, block):
                found.extend(paging.reader.block(queue, page, block))
    if paging.reader.failed is not None or not found:
        paged.sparse = False
        return
    _replace(paging, queue, paged, run, found)
    paging.touch(queue)


def _run(paged: PagedQueue) -> list[Page]:
    """Neighbours that are untouched by readers, small together, and one of them sparse; two at least."""
    pages = paged.pages
    most = paged.queue.account.page_size_bytes // SHARE
    run: list[Page] = []
    size = 0
    sparse = False
    for page in pages:
        whole = page.read == 0 and not page.deliveries
        if not whole or size + page.unread_bytes > most or len(run) >= PAGES_A_TURN:
            if len(run) > 1 and sparse:
                return run
            run = []
            size = 0
            sparse = False
        if whole and page.unread_bytes <= most:
            run.append(page)
            size += page.unread_bytes
            sparse = sparse or page.sparse()
    return run if len(run) > 1 and sparse else []


def _has_any(page: Page, block: int) -> bool:
    for index in range(page.starts[block], page.end_of(block)):
        if not page.is_finished(index):
            return True
    return False


def _replace(
    paging: Paging, queue: Queue, paged: PagedQueue, run: list[Page], found: list[PagedReference]
) -> None:
    broker = paging.broker
    page = Page(broker.take_message_id(), queue.id)
    page.entries = len(found)
    page.first = found[0].sequence
    page.last = run[len(run) - 1].last
    page.live = page.unread = len(found)
    page.id_min = found[0].message.id
    blocks: list[bytes] = []
    out = BytesWriter()
    for index, reference in enumerate(found):
        message_id = int(reference.message.id)
        page.id_min = min(page.id_min, message_id)
        page.id_max = max(page.id_max, message_id)
        page.unread_bytes += reference.size
        if reference.durable:
            page.durable_count += 1
            page.durable_bytes += reference.size
        _take_body(reference, page, index)
        if len(out) == 0:
            page.starts.append(index)
            page.firsts.append(reference.sequence)
        write_entry(out, reference)
        if len(out) >= BLOCK_BYTES:
            blocks.append(out.getvalue())
            out = BytesWriter()
    if len(out) > 0:
        blocks.append(out.getvalue())
    special = queue.special
    if special is not None and special.values is not None:
        for index, reference in enumerate(found):
            special.values.moved(special, reference, page, index)
    _store(paging, page, blocks, run)
    place = paged.pages.index(run[0])
    for old in run:
        paged.pages.remove(old)
    paged.pages.insert(place, page)
    broker.trace.count("pages_merged", len(run))


def _take_body(reference: PagedReference, page: Page, index: int) -> None:
    """A large message is held by the new page from now on, no longer by the old one."""
    old = reference.page
    body = old.bodies.pop(reference.index, None)
    if body is not None:
        page.bodies[index] = body
        if old.passing.pop(reference.index, False):
            page.passing[index] = True


def _store(paging: Paging, page: Page, blocks: list[bytes], run: list[Page]) -> None:
    batch = records.Batch()
    batch.add(records.PAGE, paging.state_of(page))
    for old in run:
        writer = Writer()
        writer.int64(old.queue_id)
        writer.int64(old.number)
        batch.add(records.PAGE_DONE, writer.getvalue())
    paging.put(page, blocks, batch)
    for old in run:
        old.gone = True
        del paging.pages[old.number]
        paging.doomed.append((page.lsn, old.number))
    paging.pages[page.number] = page
