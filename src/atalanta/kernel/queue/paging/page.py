"""A page: a run of messages of one queue in a file, and which of them are finished.

The file never changes. Finished entries are recorded by the ordinary ACKS records, and by the PAGE record when it is
written again. A page's state is its PAGE record and the ACKS (and DELIVERY) records behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, u8

from atalanta.message.codec import decode_stored, write_message
from atalanta.message.encoding.buffer import DecodeError, Reader, Writer

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeBody
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message

ENTRIES_MAX: Final = 1 << 24
DURABLE: Final = 1  # flag of an entry


class PageEntry:
    """A message as a page holds it."""

    def __init__(
        self, message: Message, sequence: int, flags: int, delivery_count: int, route_to: bytes
    ) -> None:
        self.message = message
        self.sequence = sequence
        self.durable: bool = flags & DURABLE != 0
        self.delivery_count = delivery_count
        self.route_to = route_to


class Page:
    """State of a page. `starts` and `firsts`: index and sequence of each block's first entry.

    `read`: number of entries handed to the queue. `live` entries are not finished, `unread` of those are not in the
    queue's memory, `unread_bytes` their size. `deliveries`: index -> (delivery count, not before ms), of entries that a
    consumer returned. `old`: written before the last restart, so that its non-durable entries are lost.
    """

    def __init__(self, number: int, queue_id: int) -> None:
        self.number = number
        self.queue_id = queue_id
        self.lsn: int = 0
        self.entries: int = 0
        self.first: int = 0
        self.last: int = 0
        self.id_min: int = 0
        self.id_max: int = 0
        self.durable_count: int = 0
        self.durable_bytes: int = 0
        self.starts: list[int] = []
        self.firsts: list[int] = []
        self.read: int = 0
        self.live: int = 0
        self.unread: int = 0
        self.unread_bytes: int = 0
        self.finished: bytearray = bytearray()
        self.deliveries: dict[int, tuple[int, int]] = {}
        self.bodies: dict[int, LargeBody] = {}  # of unfinished large messages, by index
        self.non_durable: dict[int, bool] = {}  # non-durable ones of `bodies`
        self.large: list[tuple[int, int, int, int]] = []  # as read from a record: index, file, its bytes and crc32c
        self.old: bool = False
        self.damaged: bool = False  # the file is kept aside when the page ends
        self.ended: bool = False

    def is_finished(self, index: int) -> bool:
        place = index >> 3
        return place < len(self.finished) and self.finished[place] & (1 << (index & 7)) != 0

    def finish(self, index: int) -> None:
        """Sets the entry's bit; the caller changes the counters."""
        if not self.finished:
            self.finished = bytearray((self.entries + 7) >> 3)
        self.finished[index >> 3] |= 1 << (index & 7)

    def count_read(self, count: int, size: int) -> None:
        """Counts entries that were unread and are not any more."""
        self.unread -= count
        self.unread_bytes -= size

    def lose(self, count: int, size: int) -> None:
        """Removes unread entries whose block is damaged; their bits are set."""
        self.live -= count
        self.unread -= count
        self.unread_bytes -= size
        self.damaged = True

    def all_durable(self) -> bool:
        """Returns true if all entries count as durable, whatever the file says."""
        return self.durable_count == self.entries

    def make_durable(self) -> None:
        """Makes all entries durable. The record gets the bits of finished ones, so that a restart counts the others."""
        if not self.finished:
            self.finished = bytearray((self.entries + 7) >> 3)
        self.durable_count = self.entries
        self.non_durable.clear()

    def unsynced_bodies(self) -> list[LargeBody]:
        """Returns the bodies that a power failure may damage."""
        return [body for body in self.bodies.values() if not body.synced]

    def hand_over(self) -> None:
        """Records that no entry is unread: those that are not finished are in memory, or retained."""
        self.read = self.entries
        self.unread = 0
        self.unread_bytes = 0

    def keep_back(self, count: int, index: int) -> None:
        """Records at recovery that the live entries are unread but for `count` retained ones, those before `index`."""
        self.read = index
        self.unread = self.live - count

    def block_is_finished(self, block: int) -> bool:
        """Returns true if no entry of the block is needed: a damaged block is not read again."""
        if not self.finished:
            return False
        for index in range(self.starts[block], self.end_of(block)):
            if not self.is_finished(index):
                return False
        return True

    def last_of(self, block: int) -> int:
        """Returns the last sequence that the block may have."""
        return self.firsts[block + 1] - 1 if block + 1 < len(self.firsts) else self.last

    def unread_ranges(self, block: int, floor: int) -> list[tuple[int, int]]:
        """Returns ranges of sequences above `floor` that hold all unread and unfinished entries of the block.

        The file is not read: sequences ascend, so the place of an entry limits its sequence on both sides. The ranges
        are exact if the block has every sequence from its first one to its last, else too wide.
        """
        start = self.starts[block]
        end = self.end_of(block)
        first = self.firsts[block]
        last = self.last_of(block)
        ranges: list[tuple[int, int]] = []
        for index in range(max(start, self.read), end):
            low = max(first + index - start, floor + 1)
            high = last - (end - 1 - index)
            if high < low or self.is_finished(index):
                continue
            if ranges and low <= ranges[-1][1] + 1:
                ranges[-1] = (ranges[-1][0], high)
            else:
                ranges.append((low, high))
        return ranges

    def block_of(self, index: int) -> int:
        """Returns the block that holds the entry."""
        return _last_not_above(self.starts, index)

    def block_with(self, sequence: int) -> int:
        """Returns the last block that begins at or below `sequence` (0 if none does)."""
        return _last_not_above(self.firsts, sequence)

    def end_of(self, block: int) -> int:
        """Returns the index behind the last entry of the block."""
        return self.starts[block + 1] if block + 1 < len(self.starts) else self.entries


def _last_not_above(values: list[int], wanted: int) -> int:
    low = 0
    high = len(values)
    while high - low > 1:
        middle = (low + high) // 2
        if values[middle] <= wanted:
            low = middle
        else:
            high = middle
    return low


def ranges_text(ranges: list[tuple[int, int]]) -> str:
    """Returns ascending ranges of sequences as people write them: "3-7,9-9"; those without a gap are one."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return ",".join([f"{start}-{end}" for start, end in joined])


def write_entry(out: BytesWriter, reference: Reference) -> None:
    """Writes a page entry.

    i64 sequence, i8 flags, i32 delivery count, i32 length, route ids, u8 format, message with its broker id in that
    format.
    """
    sequence: i64 = reference.sequence
    count: i32 = reference.delivery_count
    flags = DURABLE if reference.durable else 0
    write_i64_be(out, sequence)
    out.append(u8(flags))
    write_i32_be(out, count)
    size: i32 = len(reference.route_to)
    write_i32_be(out, size)
    out.write(reference.route_to)
    out.append(u8(reference.message.format))
    write_message(out, reference.message, reference.message.id)


def decode_block(data: bytes) -> list[PageEntry]:
    """Returns all entries of a block. DecodeError names the field."""
    reader = Reader(data)
    found: list[PageEntry] = []
    while reader.left() > 0:
        sequence = reader.int64("page.sequence")
        flags = reader.uint8("page.flags")
        if flags > DURABLE:
            raise DecodeError("page.flags", int(reader.position), f"unknown flags {flags}")
        count = reader.int32("page.delivery_count")
        route_to = reader.take(reader.int32("page.route"), "page.route_to")
        message = decode_stored(reader, "page.format")
        found.append(PageEntry(message, sequence, flags, count, route_to))
    return found


def encode_page(page: Page, message_ids: list[int]) -> bytes:
    """Encodes the PAGE record. `message_ids`: the MESSAGE records that a new page replaces; else empty."""
    writer = Writer()
    writer.int64(page.queue_id)
    writer.int64(page.number)
    writer.int32(page.entries)
    writer.int64(page.first)
    writer.int64(page.last)
    writer.int64(page.id_min)
    writer.int64(page.id_max)
    writer.int32(page.durable_count)
    writer.int64(page.durable_bytes)
    writer.boolean(page.damaged)
    writer.int32(len(page.starts))
    for start, first in zip(page.starts, page.firsts, strict=True):
        writer.int32(start)
        writer.int64(first)
    writer.int32(len(message_ids))
    for message_id in message_ids:
        writer.int64(message_id)
    writer.int32(len(page.finished))
    writer.raw(bytes(page.finished))
    writer.int32(len(page.deliveries))
    for index, (count, at_ms) in page.deliveries.items():
        writer.int32(index)
        writer.int32(count)
        writer.int64(at_ms)
    durable_bodies = [(index, body) for index, body in page.bodies.items() if index not in page.non_durable]
    writer.int32(len(durable_bodies))
    for index, body in durable_bodies:
        writer.int32(index)
        writer.int64(body.file)
        writer.int64(body.size)
        writer.int64(body.crc)
    return writer.getvalue()


def decode_page(reader: Reader) -> tuple[Page, list[int]]:
    """Decodes a page and its message ids. DecodeError names the field."""
    queue_id = reader.int64("page.queue")
    page = Page(reader.int64("page.number"), queue_id)
    page.entries = reader.int32("page.entries")
    if page.entries < 1 or page.entries > ENTRIES_MAX:
        raise DecodeError("page.entries", int(reader.position), f"{page.entries} entries")
    page.first = reader.int64("page.first")
    page.last = reader.int64("page.last")
    page.id_min = reader.int64("page.id_min")
    page.id_max = reader.int64("page.id_max")
    page.durable_count = reader.int32("page.durable_count")
    page.durable_bytes = reader.int64("page.durable_bytes")
    page.damaged = reader.boolean("page.damaged")
    for _ in range(reader.count("page.blocks", 12)):
        page.starts.append(reader.int32("page.start"))
        page.firsts.append(reader.int64("page.first_sequence"))
    message_ids: list[int] = []
    for _ in range(reader.count("page.messages", 8)):
        message_ids.append(reader.int64("page.message"))
    bits = reader.int32("page.bits")
    page.finished = bytearray(reader.take(bits, "page.finished"))
    if bits not in (0, (page.entries + 7) >> 3):
        raise DecodeError("page.bits", int(reader.position), f"{bits} bytes for {page.entries} entries")
    for _ in range(reader.count("page.deliveries", 16)):
        index = reader.int32("page.index")
        count = reader.int32("page.delivery_count")
        page.deliveries[index] = (count, reader.int64("page.not_before"))
    for _ in range(reader.count("page.large", 28)):
        index = reader.int32("page.large_index")
        if index < 0 or index >= page.entries:
            raise DecodeError("page.large_index", int(reader.position), f"{index} of {page.entries} entries")
        file = reader.int64("page.file")
        size = reader.int64("page.file_bytes")
        page.large.append((index, file, size, reader.int64("page.file_crc")))
    page.old = True
    return page, message_ids
