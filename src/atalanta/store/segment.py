"""A segment file: its name, its header, and what the journal remembers of it.

    journal-<number, 20 digits>.log
    0   magic "ATLJ" · u16 version · u16 header size · 16 bytes journal id · u64 number ·
        u64 file size · u8 used before · u32 crc32c
    64  blocks, then zeros up to the end of the file, or what an earlier segment had there

Numbers are consecutive, so that a missing file is noticed. The next segment is prepared before the
lsn of its first record is known: that stands in its first block.

A segment of no more use becomes the next one, after a time as `journal-spare-<its number>.log`: filling files with
zeros took a quarter of what a durable message cost. Its old blocks stay in it, and are no blocks of the new segment,
because the number is part of what the checksum of a block's head covers (`Segment.seal`).
"""

from __future__ import annotations

import struct
from typing import Final

from google_crc32c import value as crc32c

from atalanta.message.encoding.digits import all_digits
from atalanta.store.errors import JournalDamaged, JournalForeign

SEGMENT_MAGIC: Final = b"ATLJ"
SEGMENT_VERSION: Final = 4
SEGMENT_HEAD_SIZE: Final = 64
SEGMENT_HEAD: Final = struct.Struct(">4sHH16sQQB")
SEGMENT_CRC: Final = struct.Struct(">I")

NAME_PREFIX: Final = "journal-"
NAME_SUFFIX: Final = ".log"
NAME_DIGITS: Final = 20
SPARE_PREFIX: Final = "journal-spare-"


class Segment:
    """One file of the journal: `number` orders them, `size` is the file's length in bytes.

    Of its records, from lsn `first` to `last`: `plain` are those of the plain kind that are still of use, `others`
    those that must be read to tell (1, though nobody counted, in a segment that was there before this life).
    `end` is where its last block ends, once no more is written to it.
    """

    def __init__(self, journal_id: bytes, number: int, size: int, used_before: bool) -> None:
        self.number = number
        self.size = size
        self.used_before = used_before
        self.name = segment_name(number)
        self.seal = journal_id + number.to_bytes(8, "big")  # for block.encode_block_head
        self.end: int = SEGMENT_HEAD_SIZE
        self.first: int = 0
        self.last: int = 0
        self.plain: int = 0
        self.others: int = 0


def segment_name(number: int) -> str:
    """The file's name; names sort as numbers do."""
    return f"{NAME_PREFIX}{number:0{NAME_DIGITS}d}{NAME_SUFFIX}"


def spare_name(number: int) -> str:
    """Of the file that was segment `number` and may become another."""
    return f"{SPARE_PREFIX}{number:0{NAME_DIGITS}d}{NAME_SUFFIX}"


def is_spare(name: str) -> bool:
    """Whether that is a name of `spare_name`."""
    return name.startswith(SPARE_PREFIX) and name.endswith(NAME_SUFFIX)


def segment_number(name: str) -> int:
    """The number in a file name; 0 when it is no name of a segment."""
    digits = name[len(NAME_PREFIX) : len(name) - len(NAME_SUFFIX)]
    if all_digits(digits, NAME_DIGITS):
        number = int(digits)
        if name == segment_name(number):
            return number
    return 0


def encode_segment_head(journal_id: bytes, number: int, size: int, used_before: bool) -> bytes:
    """The first 64 bytes of a segment of `size` bytes."""
    head = SEGMENT_HEAD.pack(
        SEGMENT_MAGIC,
        SEGMENT_VERSION,
        SEGMENT_HEAD_SIZE,
        journal_id,
        number,
        size,
        1 if used_before else 0,
    )
    checksum: int = crc32c(head)
    return (head + SEGMENT_CRC.pack(checksum)).ljust(SEGMENT_HEAD_SIZE, b"\0")


def check_segment_head(head: bytes, name: str, size: int, journal_id: bytes) -> bool:
    """Whether a file of `size` bytes is complete; False when its creation was cut off (or damage).

    A whole header of another node or version raises JournalForeign, of another file JournalDamaged.
    """
    if len(head) < SEGMENT_HEAD_SIZE:
        return False
    magic, version, head_size, found_id, number, full_size, _ = SEGMENT_HEAD.unpack_from(head)
    checksum: int = crc32c(head[: SEGMENT_HEAD.size])
    if magic != SEGMENT_MAGIC or SEGMENT_CRC.unpack_from(head, SEGMENT_HEAD.size)[0] != checksum:
        return False
    if version != SEGMENT_VERSION or head_size != SEGMENT_HEAD_SIZE:
        raise JournalForeign(
            f"journal file {name} has format version {version}, this program reads "
            f"{SEGMENT_VERSION}: empty its queues with the release that wrote it, then start this one "
            "with a new data folder"
        )
    if found_id != journal_id:
        raise JournalForeign(
            f"journal file {name} belongs to node {found_id.hex()}, this is node "
            f"{journal_id.hex()}: the journal and the node id beside it must stay together"
        )
    if segment_name(number) != name:
        raise JournalDamaged(name, 0, f"the header says {segment_name(number)}: a renamed file")
    return size == int(full_size)


def was_used_before(head: bytes) -> bool:
    """Of a header that `check_segment_head` found whole: what lies behind the blocks means nothing."""
    used: int = SEGMENT_HEAD.unpack_from(head)[6]
    return used != 0
