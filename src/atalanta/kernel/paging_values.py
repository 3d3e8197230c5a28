"""Last values that lie in page files: what pushes them out finds them by their value, without reading the file.

Of each value there is one message, wherever it lies. Of those in files the queue's memory holds a few numbers and the
value (some 250 bytes each, whatever the message's size). The end of one that is replaced stands in the record of the
message that replaces it (displacing.py), its entry ends when that one enters the queue. (Artemis applies the rule only
when it reads pages back: LastValueQueue.addTail, so that there a value may lie in files many times, and is counted so.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel import records
from atalanta.kernel.buffer import DecodeError
from atalanta.kernel.finishing import drop
from atalanta.kernel.reference import READY
from atalanta.kernel.story import tell

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.paging import Paging
    from atalanta.kernel.paging_page import Page
    from atalanta.kernel.queue import Queue
    from atalanta.kernel.reference import Reference
    from atalanta.kernel.special import Special


class Lying:
    """A message with a value, in a page file. `pushed_by`: sequence of the one that replaces it, 0 if none does."""

    def __init__(self, page: Page, index: int, reference: Reference) -> None:
        self.page = page
        self.index = index
        self.sequence: int = reference.sequence
        self.message_id: int = reference.message.id
        self.size: int = reference.size
        self.durable: bool = reference.durable
        self.pushed_by: int = 0


class PagedValues:
    """`lying`: the newest of each value that is not in Special.newest. `leaving`, by sequence: on their way out;
    `displaced`: the same, by the sequence of what replaces them."""

    def __init__(self) -> None:
        self.lying: dict[str, Lying] = {}
        self.leaving: dict[int, Lying] = {}
        self.displaced: dict[int, Lying] = {}

    def written(self, special: Special, reference: Reference, page: Page, index: int) -> None:
        """A message of the tail lies in a file now."""
        value = special.value_of(reference.message)
        if value is None:
            return
        if special.newest.get(value) is reference:
            del special.newest[value]
            self.lying[value] = Lying(page, index, reference)
        elif reference.sequence in special.leaving:
            del special.leaving[reference.sequence]
            for sequence, found in special.displaced.items():
                if found[0] is reference:
                    lying = Lying(page, index, reference)
                    lying.pushed_by = sequence
                    self._on_its_way(lying)
                    del special.displaced[sequence]
                    break

    def arrived(self, special: Special, reference: Reference) -> None:
        """A message of a file is in memory now."""
        leaving = self.leaving.pop(reference.sequence, None)
        if leaving is not None:
            del self.displaced[leaving.pushed_by]
            special.leaving[reference.sequence] = reference
            special.displaced[leaving.pushed_by] = [reference]
            reference.durable = False  # its end is in the journal
            return
        value = special.value_of(reference.message)
        if value is not None:
            lying = self.lying.get(value)
            if lying is not None and lying.sequence == reference.sequence:
                del self.lying[value]
                special.newest[value] = reference

    def displace(self, special: Special, reference: Reference, batch: records.Batch) -> None:
        """`reference` was given its place: the journal forgets, with it, the one in a file that it replaces."""
        value = special.value_of(reference.message)
        if value is None:
            return
        lying = self.lying.pop(value, None)
        if lying is None:
            return
        lying.pushed_by = reference.sequence
        self._on_its_way(lying)
        special.leaving_ready += 1
        if lying.durable:
            batch.add(records.ACKS, records.encode_acks(reference.queue.id, [lying.message_id]))

    def _on_its_way(self, lying: Lying) -> None:
        self.leaving[lying.sequence] = lying
        self.displaced[lying.pushed_by] = lying

    def entered(self, broker: Broker, special: Special, reference: Reference) -> None:
        """`reference` is in the queue now: the one that it replaces ends."""
        lying = self.displaced.pop(reference.sequence, None)
        if lying is None:
            return
        del self.leaving[lying.sequence]
        special.leaving_ready -= 1
        special.replaced += 1
        if broker.trace.on:
            _tell(broker, reference.queue, lying)
        finish_lying(broker.paging, reference.queue, lying)

    def clear(self, special: Special) -> None:
        """Nothing of the queue lies in files any more (purge)."""
        special.leaving_ready -= len(self.leaving)
        self.lying.clear()
        self.leaving.clear()
        self.displaced.clear()

    def moved(self, special: Special, reference: Reference, page: Page, index: int) -> None:
        """The file was written anew (paging_merge.py): where a message lies now."""
        lying = self.leaving.get(reference.sequence)
        if lying is None:
            value = special.value_of(reference.message)
            lying = None if value is None else self.lying.get(value)
        if lying is not None and lying.sequence == reference.sequence:
            lying.page = page
            lying.index = index


def finish_lying(paging: Paging, queue: Queue, lying: Lying) -> None:
    """Its entry ends (its ACKS record is written by who knows); the file goes with its last."""
    page = lying.page
    paged = queue.paged
    assert paged is not None
    paging.finish_entry(page, lying.index)
    page.live -= 1
    page.unread -= 1
    page.unread_bytes -= lying.size
    queue.message_count -= 1
    queue.bytes -= lying.size
    paging.outside(paged, -1, -lying.size)
    if page.live <= 0:
        paging.done(page)
    if page.unread <= 0:
        paged.pages.remove(page)
    elif page.sparse():
        paged.sparse = True
    paging.touch(queue)


def leave_tail(paging: Paging, special: Special, reference: Reference) -> bool:
    """The reference ends, if it waits in the tail of its queue; whether it did."""
    queue = reference.queue
    paged = queue.paged
    if paged is None:
        return False
    index = paged.place_in_tail(reference.sequence)
    if index >= len(paged.tail) or paged.tail[index] is not reference:
        return False
    del paged.tail[index]
    paged.forget_encoding()
    paged.tail_bytes -= reference.size
    paging.tail_bytes -= reference.size
    special.removed(reference, True)
    queue.message_count -= 1
    queue.bytes -= reference.size
    paging.outside(paged, -1, -reference.size)
    drop(paging.broker, reference)
    return True


def leaving_of(special: Special, page: Page) -> list[int]:
    """Entries of the page whose end is in the journal, though they are there until what replaces them has come."""
    found: list[int] = []
    for reference in special.leaving.values():
        index = reference.index_in(page)
        if index >= 0:
            found.append(index)
    if special.values is not None:
        for lying in special.values.leaving.values():
            if lying.page is page:
                found.append(lying.index)
    return found


def restore_values(broker: Broker, queue: Queue, special: Special) -> list[Reference]:
    """After a restart, behind Special.restore: the newest values of pages and tail. Reads every page.

    Older ones in files end here; those elsewhere are returned. DecodeError when a file cannot be read. Memory comes
    before pages and tail, but for what a branch in doubt holds: it may be newer than what lies there.
    """
    paged = queue.paged
    stale: list[Reference] = []
    if paged is None or special.last_value_key is None:
        return stale
    paging = broker.paging
    values = PagedValues()
    special.values = values
    ended: list[Lying] = []
    for page in paged.pages:
        for block in range(page.block_of(page.read), len(page.starts)):
            for reference in paging.reader.block(queue, page, block):
                value = special.value_of(reference.message)
                if value is None:
                    continue
                lying = Lying(page, reference.index, reference)
                if _is_newest(special, value, reference):
                    _replaces(special, values, value, stale, ended)
                    values.lying[value] = lying
                else:
                    ended.append(lying)
            if paging.reader.failed is not None:
                raise DecodeError("page", 0, paging.reader.failed)
    for waiting in paged.tail:
        value = special.value_of(waiting.message)
        if value is None:
            continue
        if _is_newest(special, value, waiting):
            _replaces(special, values, value, stale, ended)
            special.newest[value] = waiting
        else:
            stale.append(waiting)
    batch = records.Batch()
    message_ids = [lying.message_id for lying in ended if lying.durable]
    if message_ids:
        batch.add(records.ACKS, records.encode_acks(queue.id, message_ids))
    for lying in ended:
        finish_lying(paging, queue, lying)
    broker.append_batch(batch, [], [], None, 0)
    return stale


def _is_newest(special: Special, value: str, reference: Reference) -> bool:
    """Of all that was looked at: what lies in pages comes in its order."""
    known = special.newest.get(value)
    return known is None or known.sequence < reference.sequence


def _replaces(
    special: Special,
    values: PagedValues,
    value: str,
    stale: list[Reference],
    ended: list[Lying],
) -> None:
    previous = special.newest.pop(value, None)
    if previous is not None and previous.state == READY:
        stale.append(previous)
    lying = values.lying.pop(value, None)
    if lying is not None:
        ended.append(lying)


def _tell(broker: Broker, queue: Queue, lying: Lying) -> None:
    page = lying.page
    for reference in broker.paging.reader.block(queue, page, page.block_of(lying.index)):
        if reference.index == lying.index:
            tell(broker.trace, "story_replaced", reference.message, queue.name)


def validate_values(queue: Queue, special: Special) -> None:
    """Assert that what is known of values in files is what lies there (reads every page: for tests)."""
    paged = queue.paged
    values = special.values
    found: dict[str, int] = {}
    leaving: list[int] = []
    if paged is not None and special.last_value_key is not None:
        assert values is not None or not paged.pages, f"queue {queue.name}: values of pages"
        for page in paged.pages:
            for block in range(page.block_of(page.read), len(page.starts)):
                for reference in paged.paging.reader.block(queue, page, block):
                    if values is not None and reference.sequence in values.leaving:
                        leaving.append(reference.sequence)
                        continue
                    value = special.value_of(reference.message)
                    if value is not None:
                        assert value not in found, f"queue {queue.name}: {value} lies there twice"
                        assert value not in special.newest, f"queue {queue.name}: {value}"
                        found[value] = reference.sequence
    if values is not None:
        known = {value: lying.sequence for value, lying in values.lying.items()}
        assert known == found, f"queue {queue.name}: values in files {found}, {known} known"
        assert sorted(leaving) == sorted(values.leaving), f"queue {queue.name}: leaving"
