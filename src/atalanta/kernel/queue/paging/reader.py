"""The page reader: decodes page entries into references, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.ports import PageError
from atalanta.kernel.queue.paging.page import Entry, Page, decode_block
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from atalanta.message.encoding.buffer import DecodeError

if TYPE_CHECKING:
    from atalanta.kernel.ports import Pages
    from atalanta.kernel.queue.queue import Queue

BLOCKS_CACHED: Final = 4


class PageReader:
    """Reads pages. `failed`: the error of a page that could not be read; the node must stop then."""

    def __init__(self, files: Pages) -> None:
        self.files = files
        self.failed: str | None = None
        self._cache: dict[tuple[int, int], list[PagedReference]] = {}

    def read(self, page: Page, block: int) -> list[Entry] | None:
        """Returns the entries of a block; None on a read error, after which the node must stop."""
        try:
            entries = decode_block(self.files.read(page.number, block))
        except (PageError, DecodeError) as error:
            self.failed = str(error)
            return None
        if len(entries) != page.end_of(block) - page.starts[block]:
            self.failed = f"page {page.number}: block {block} has {len(entries)} entries"
            return None
        return entries

    def reference(self, queue: Queue, page: Page, index: int, entry: Entry) -> PagedReference:
        if page.bodies:
            entry.message.large = page.bodies.get(index)
        reference = PagedReference(
            entry.message, queue, entry.sequence, entry.route_to, page, index
        )
        reference.durable = entry.durable
        reference.delivery_count = entry.delivery_count
        delivered = page.deliveries.get(index)
        if delivered is not None:
            reference.delivery_count = delivered[0]
        return reference

    def block(self, queue: Queue, page: Page, block: int) -> list[PagedReference]:
        """Returns the messages of a block that are unfinished and not in memory."""
        key = (page.number, block)
        found = self._cache.get(key)
        if found is None:
            entries = self.read(page, block)
            if entries is None:
                return []
            found = []
            for at, entry in enumerate(entries):
                if alive(page, page.starts[block] + at, entry, queue):
                    found.append(self.reference(queue, page, page.starts[block] + at, entry))
            if len(self._cache) >= BLOCKS_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = found
        return [
            reference
            for reference in found
            if reference.index >= page.read and not page.is_finished(reference.index)
        ]


def alive(page: Page, index: int, entry: Entry, queue: Queue) -> bool:
    """Returns true if the entry is still to be delivered."""
    if page.is_finished(index) or entry.sequence <= queue.log.acked_through:
        return False
    return entry.durable or not page.old
