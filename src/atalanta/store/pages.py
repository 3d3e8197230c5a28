"""Page files: the messages of a paging address (kernel/queue/paging/paging.py).

A page is written once and read block by block.

    page-<number, 20 digits>.page
    0   magic "ATLP" · u16 version · u16 blocks · 16 bytes journal id · u64 number ·
        blocks * (u32 offset · u32 length · u32 crc32c) · u32 crc32c of all before
    …   the blocks

One job of the disk creates the whole file, before the journal commits the record that names it. A file that no
record names was left by a crash.
"""

from __future__ import annotations

import struct
from errno import EIO
from typing import Final

from google_crc32c import value as crc32c

from atalanta.kernel import ports
from atalanta.kernel.ports import Disk, PageError
from atalanta.message.encoding.digits import all_digits

PAGE_MAGIC: Final = b"ATLP"
PAGE_VERSION: Final = 2
PAGE_HEAD: Final = struct.Struct(">4sHH16sQ")
PAGE_PLACE: Final = struct.Struct(">III")
PAGE_CRC: Final = struct.Struct(">I")
NAME_PREFIX: Final = "page-"
NAME_SUFFIX: Final = ".page"
DAMAGED_SUFFIX: Final = ".damaged"
NAME_DIGITS: Final = 20
# Maximum number of cached block tables, of the files that were read last.
TABLES_MAX: Final = 8


def page_name(number: int) -> str:
    return f"{NAME_PREFIX}{number:0{NAME_DIGITS}d}{NAME_SUFFIX}"


def page_number(name: str) -> int:
    """Returns the page number in a file name; 0 for any other file name."""
    digits = name[len(NAME_PREFIX) : len(name) - len(NAME_SUFFIX)]
    if all_digits(digits, NAME_DIGITS):
        number = int(digits)
        if name == page_name(number):
            return number
    return 0


class PageFiles(ports.Pages):
    """The Pages port over the journal's disk, which carries out its jobs in order."""

    def __init__(self, disk: Disk, journal_id: bytes) -> None:
        self.disk = disk
        self.journal_id = journal_id
        self._unsettled: dict[int, bytes] = {}
        self._tables: dict[int, list[tuple[int, int, int]]] = {}

    def write(self, number: int, blocks: list[bytes]) -> int:
        """Implements Pages.write."""
        offset = PAGE_HEAD.size + len(blocks) * PAGE_PLACE.size + PAGE_CRC.size
        head = PAGE_HEAD.pack(PAGE_MAGIC, PAGE_VERSION, len(blocks), self.journal_id, number)
        places: list[bytes] = [head]
        for block in blocks:
            places.append(PAGE_PLACE.pack(offset, len(block), crc32c(block)))
            offset += len(block)
        head = b"".join(places)
        data = head + PAGE_CRC.pack(crc32c(head)) + b"".join(blocks)
        self._unsettled[number] = data
        self.disk.create(page_name(number), len(data), data)
        return len(data)

    def read(self, number: int, block: int) -> bytes:
        """Implements Pages.read."""
        table = self._table(number)
        if block >= len(table):
            raise PageError(f"page file {page_name(number)}: block {block} does not exist")
        offset, length, crc = table[block]
        data = self._bytes(number, offset, length)
        if len(data) != length or crc32c(data) != crc:
            raise PageError(
                f"page file {page_name(number)}, offset {offset}: block {block} is damaged"
            )
        return data

    def settled(self, number: int) -> None:
        """Implements Pages.settled."""
        self._unsettled.pop(number, None)

    def delete(self, number: int) -> None:
        """Implements Pages.delete."""
        self._unsettled.pop(number, None)
        self._tables.pop(number, None)
        self.disk.delete(page_name(number))

    def keep(self, number: int) -> None:
        """Implements Pages.keep."""
        self._unsettled.pop(number, None)
        self._tables.pop(number, None)
        name = page_name(number)
        if name in self.disk.names():
            self.disk.set_aside(name, name + DAMAGED_SUFFIX)

    def numbers(self) -> list[int]:
        """Implements Pages.numbers."""
        found = [page_number(name) for name in self.disk.names()]
        return sorted(number for number in found if number > 0)

    def content(self, number: int) -> bytes:
        """Returns the whole file, also while it is still being written. Errors as in `read`."""
        data = self._unsettled.get(number)
        return self._bytes(number, 0, self._size(number)) if data is None else data

    def stamp(self, number: int) -> tuple[int, int]:
        """Returns the size of the file and the checksum of its table, which has those of all blocks.

        Errors as in `read`.
        """
        count = len(self._table(number))
        checksum = self._bytes(number, PAGE_HEAD.size + count * PAGE_PLACE.size, PAGE_CRC.size)
        data = self._unsettled.get(number)
        size = self._size(number) if data is None else len(data)
        return size, int.from_bytes(checksum, "big")

    def block_count(self, number: int) -> int:
        """Returns how many blocks the file has. Errors as in `read`."""
        return len(self._table(number))

    def check(self, number: int) -> None:
        """Reads every block of the file. Errors as in `read`."""
        for block in range(self.block_count(number)):
            self.read(number, block)

    def forget(self, number: int) -> None:
        """Drops what is known of the file: it may be written anew."""
        self._tables.pop(number, None)

    def _size(self, number: int) -> int:
        try:
            return self.disk.size(page_name(number))
        except FileNotFoundError as error:
            raise PageError(f"page file {page_name(number)}: {error}") from error

    def _bytes(self, number: int, offset: int, length: int) -> bytes:
        data = self._unsettled.get(number)
        if data is not None:
            return data[offset : offset + length]
        try:
            return self.disk.read(page_name(number), offset, length)
        except OSError as error:
            if isinstance(error, FileNotFoundError) or error.errno == EIO:
                raise PageError(f"page file {page_name(number)}: {error}") from error
            raise  # the next start may read the file: no message is lost

    def _table(self, number: int) -> list[tuple[int, int, int]]:
        known = self._tables.get(number)
        if known is None:
            known = self._read_table(number)
            if len(self._tables) >= TABLES_MAX:
                del self._tables[next(iter(self._tables))]
            self._tables[number] = known
        return known

    def _read_table(self, number: int) -> list[tuple[int, int, int]]:
        name = page_name(number)
        head = self._bytes(number, 0, PAGE_HEAD.size)
        if len(head) < PAGE_HEAD.size:
            raise PageError(f"page file {name}: the file is cut off")
        magic, version, count, journal_id, own = PAGE_HEAD.unpack(head)
        if magic != PAGE_MAGIC or version != PAGE_VERSION:
            raise PageError(f"page file {name}: not a page file, or of another version")
        if journal_id != self.journal_id or own != number:
            raise PageError(f"page file {name}: it belongs to another node or page number")
        size = count * PAGE_PLACE.size
        rest = self._bytes(number, PAGE_HEAD.size, size + PAGE_CRC.size)
        if len(rest) < size + PAGE_CRC.size or PAGE_CRC.unpack_from(rest, size)[0] != crc32c(
            head + rest[:size]
        ):
            raise PageError(f"page file {name}: its table of blocks is damaged")
        return [PAGE_PLACE.unpack_from(rest, place * PAGE_PLACE.size) for place in range(count)]
