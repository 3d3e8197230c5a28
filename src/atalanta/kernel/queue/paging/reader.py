"""The page reader: decodes page entries into references, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.ports import PageError
from atalanta.kernel.queue.paging.page import Page, PageEntry, decode_block
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from atalanta.message.encoding.buffer import DecodeError

if TYPE_CHECKING:
    from atalanta.kernel.ports import Pages
    from atalanta.kernel.queue.queue import Queue

BLOCKS_CACHED: Final = 4


class Damage:
    """The damage of a page: the first block that could not be read, and why."""

    def __init__(self, queue: Queue, page: Page, why: str) -> None:
        self.queue = queue
        self.page = page
        self.why = why


class PageReader:
    """Reads pages. `damaged`: pages with unreadable blocks, until Paging.drop_damaged has removed their messages."""

    def __init__(self, files: Pages) -> None:
        self.files = files
        self.damaged: dict[int, Damage] = {}
        self._cache: dict[tuple[int, int], list[PagedReference]] = {}

    def read(self, queue: Queue, page: Page, block: int) -> list[PageEntry] | None:
        """Returns the entries of a block; None if it is damaged, which is kept in `damaged`."""
        try:
            entries = decode_block(self.files.read(page.number, block))
        except (PageError, DecodeError) as error:
            self._note(queue, page, str(error))
            return None
        if len(entries) != page.end_of(block) - page.starts[block]:
            self._note(queue, page, f"block {block} has {len(entries)} entries")
            return None
        if page.all_durable():
            for entry in entries:
                entry.durable = True  # as the file says, or by Page.make_durable
        return entries

    def forget(self) -> None:
        """Drops the blocks in memory: the next reads decode them again."""
        self._cache.clear()

    def take_damaged(self) -> list[Damage]:
        """Returns the pages found damaged since the last call."""
        found = list(self.damaged.values())
        self.damaged.clear()
        return found

    def _note(self, queue: Queue, page: Page, why: str) -> None:
        self.damaged.setdefault(page.number, Damage(queue, page, why))

    def reference(self, queue: Queue, page: Page, index: int, entry: PageEntry) -> PagedReference:
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
            if page.block_is_finished(block):
                return []
            entries = self.read(queue, page, block)
            if entries is None:
                return []
            found = []
            for at, entry in enumerate(entries):
                if alive(page, page.starts[block] + at, entry, queue):
                    if found and found[len(found) - 1].message.id == entry.message.id:
                        found[len(found) - 1].join(page.starts[block] + at, entry.route_to)
                        continue
                    found.append(self.reference(queue, page, page.starts[block] + at, entry))
            if len(self._cache) >= BLOCKS_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = found
        return [
            reference
            for reference in found
            if reference.index >= page.read and not page.is_finished(reference.index)
        ]


def alive(page: Page, index: int, entry: PageEntry, queue: Queue) -> bool:
    """Returns true if the entry is still to be delivered."""
    if page.is_finished(index) or entry.sequence <= queue.log.acked_through:
        return False
    return entry.durable or not page.old
