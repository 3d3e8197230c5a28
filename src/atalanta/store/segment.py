"""The segment file: its name, its header, and the journal's state about it.

    journal-<number, 20 digits>.log
    0   magic "ATLJ" · u16 version · u16 header size · 16 bytes journal id · u64 number ·
        u64 file size · u8 used before · u32 crc32c
    64  blocks, then zeros up to the end of the file, or bytes of an earlier segment

Numbers are consecutive, so that a missing file is noticed. The next segment is prepared before the lsn of its
first record is known. The header of its first block holds that lsn.

The file of a deleted segment is reused for a new one; meanwhile its name is `journal-spare-<its number>.log`.
Filling files with zeros took a quarter of the cost of a durable message. The old blocks stay in the file. They
are not valid blocks of the new segment, because the checksum of a block's header covers the number
(`Segment.seal`).

Files of version 7 are read, and are not written any more: the next block begins a new file. In version 7 a block's
header has no epoch.
"""

from __future__ import annotations

import struct
from typing import Final

from google_crc32c import value as crc32c

from atalanta.message.encoding.digits import all_digits
from atalanta.store.block import BLOCK_HEAD_SIZE, BLOCK_HEAD_SIZE_7
from atalanta.store.errors import JournalDamaged, JournalForeign

SEGMENT_MAGIC: Final = b"ATLJ"
SEGMENT_VERSION: Final = 8
OLDEST_VERSION: Final = 7  # that is read
SEGMENT_HEAD_SIZE: Final = 64
SEGMENT_HEAD: Final = struct.Struct(">4sHH16sQQB")
SEGMENT_CRC: Final = struct.Struct(">I")

NAME_PREFIX: Final = "journal-"
NAME_SUFFIX: Final = ".log"
NAME_DIGITS: Final = 20
SPARE_PREFIX: Final = "journal-spare-"


class Segment:
    """A file of the journal: `number` orders the files, `size` is the length in bytes.

    The segment has the records from lsn `first` to `last`. `plain` counts its live records of the plain kind.
    `others` counts the records that must be read to know whether they are alive. In a segment of an earlier
    process `others` is 1, not counted. `end` is the end of its last block, written or being written.
    """

    def __init__(
        self,
        journal_id: bytes,
        number: int,
        size: int,
        used_before: bool,
        version: int = SEGMENT_VERSION,
    ) -> None:
        self.number = number
        self.size = size
        self.used_before = used_before
        self.version = version
        self.block_head_size: int = BLOCK_HEAD_SIZE if version > 7 else BLOCK_HEAD_SIZE_7
        self.name = segment_name(number)
        self.journal_id = journal_id
        self.seal = journal_id + number.to_bytes(8, "big")  # for block.encode_block_head
        self.end: int = SEGMENT_HEAD_SIZE
        self.first: int = 0
        self.last: int = 0
        self.plain: int = 0
        self.others: int = 0

    def head(self) -> bytes:
        """Encodes the header of the file: 64 bytes."""
        head = SEGMENT_HEAD.pack(
            SEGMENT_MAGIC,
            self.version,
            SEGMENT_HEAD_SIZE,
            self.journal_id,
            self.number,
            self.size,
            1 if self.used_before else 0,
        )
        checksum: int = crc32c(head)
        return (head + SEGMENT_CRC.pack(checksum)).ljust(SEGMENT_HEAD_SIZE, b"\0")


def segment_name(number: int) -> str:
    """Returns the file name of a segment; names sort like numbers."""
    return f"{NAME_PREFIX}{number:0{NAME_DIGITS}d}{NAME_SUFFIX}"


def spare_name(number: int) -> str:
    """Returns the file name of deleted segment `number` that waits for reuse."""
    return f"{SPARE_PREFIX}{number:0{NAME_DIGITS}d}{NAME_SUFFIX}"


def is_spare(name: str) -> bool:
    """Returns whether `name` is a name from `spare_name`."""
    return name.startswith(SPARE_PREFIX) and name.endswith(NAME_SUFFIX)


def segment_number(name: str) -> int:
    """Returns the segment number in a file name; 0 for any other file name."""
    digits = name[len(NAME_PREFIX) : len(name) - len(NAME_SUFFIX)]
    if all_digits(digits, NAME_DIGITS):
        number = int(digits)
        if name == segment_name(number):
            return number
    return 0


def decode_segment_head(head: bytes, name: str, size: int, journal_id: bytes) -> Segment | None:
    """Decodes the header of a file of `size` bytes. Returns None when its creation was cut off, or after damage.

    A valid header of another node or version raises JournalForeign; one of another file raises JournalDamaged.
    """
    if len(head) < SEGMENT_HEAD_SIZE:
        return None
    magic, version, head_size, found_id, number, full_size, used = SEGMENT_HEAD.unpack_from(head)
    checksum: int = crc32c(head[: SEGMENT_HEAD.size])
    if magic != SEGMENT_MAGIC or SEGMENT_CRC.unpack_from(head, SEGMENT_HEAD.size)[0] != checksum:
        return None
    if not OLDEST_VERSION <= version <= SEGMENT_VERSION or head_size != SEGMENT_HEAD_SIZE:
        raise JournalForeign(
            f"journal file {name} has format version {version}, this program reads "
            f"{OLDEST_VERSION} to {SEGMENT_VERSION}: empty its queues with the release that wrote it, "
            "then start this one with a new data folder"
        )
    if found_id != journal_id:
        raise JournalForeign(
            f"journal file {name} belongs to node {found_id.hex()}, this is node "
            f"{journal_id.hex()}: the journal and the node id beside it must stay together"
        )
    if segment_name(number) != name:
        raise JournalDamaged(name, 0, f"the header says {segment_name(number)}: a renamed file")
    if size != int(full_size):
        return None
    return Segment(journal_id, number, size, used != 0, version)
