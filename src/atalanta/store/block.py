"""Blocks and records: the bytes that one group commit writes.

    block   magic "ATBK" · u32 length · u64 first lsn · u32 count · u32 crc32c of the records ·
            u32 epoch · u32 crc32c of all before it · `length` bytes of records
    record  u32 length · u8 kind · payload; the length counts kind and payload

The checksum of the header also covers a seal: the journal's id and the number of the file (Segment.seal). So a
block of another journal inside a message body is not mistaken for a block of this journal. The same holds for a
block that an earlier use of the file has left. A block is valid only as a whole, so its records share one
checksum. The lsns of the records follow from the lsn of the first.

The epoch is that of the group of nodes that replicate the journal (ha/replication/); 0 without a group. Blocks of
format version 7 have no epoch (BLOCK_HEAD_SIZE_7), and count as epoch 0.
"""

from __future__ import annotations

import struct
from typing import Final

from google_crc32c import value as crc32c
from librt.strings import read_i32_be
from mypy_extensions import i64

BLOCK_MAGIC: Final = b"ATBK"
BLOCK_HEAD: Final = struct.Struct(">4sIQIII")
BLOCK_HEAD_SIZE: Final = 32
# The same of format version 7.
BLOCK_HEAD_7: Final = struct.Struct(">4sIQII")
BLOCK_HEAD_SIZE_7: Final = 28
EPOCH_MAX: Final = (1 << 32) - 1
# u32 length and u8 kind.
RECORD_HEAD_SIZE: Final = 5
CRC: Final = struct.Struct(">I")
# Keeps every length well below the limit of a u32.
PAYLOAD_SIZE_MAX: Final = 1 << 30


class BlockHead:
    """The decoded header of a block: `length` bytes of `count` records.

    `first` is the lsn of the first record, `checksum` the crc32c of all records.
    """

    def __init__(self, length: int, first: int, count: int, checksum: int, epoch: int) -> None:
        self.length = length
        self.first = first
        self.count = count
        self.checksum = checksum
        self.epoch = epoch

    def matches(self, records: bytes) -> bool:
        """Returns whether these are the records of the block, by length and checksum."""
        checksum: int = crc32c(records)
        return len(records) == self.length and checksum == self.checksum


def first_lsn(block: bytes) -> int:
    """Returns the lsn of the first record of a whole block, of any format version."""
    return int.from_bytes(block[8:16], "big")


class Record:
    """A decoded record; `size` is the number of its bytes in the block."""

    def __init__(self, lsn: int, kind: int, payload: bytes) -> None:
        self.lsn = lsn
        self.kind = kind
        self.payload = payload

    @property
    def size(self) -> int:
        return len(self.payload) + RECORD_HEAD_SIZE


class BlockError(Exception):
    """Records that do not match the header of their block. `offset` counts bytes from the first record."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(why)
        self.offset = offset
        self.why = why


def encode_block_head(seal: bytes, first: int, count: int, records: bytes, epoch: int) -> bytes:
    """Encodes the header of a block of `count` records; `first` is the lsn of the first of them."""
    checksum: int = crc32c(records)
    head = BLOCK_HEAD.pack(BLOCK_MAGIC, len(records), first, count, checksum, epoch)
    head_checksum: int = crc32c(seal + head)
    return head + CRC.pack(head_checksum)


def decode_block_head(
    seal: bytes, data: bytes, offset: int = 0, size: int = BLOCK_HEAD_SIZE
) -> BlockHead | None:
    """Decodes the header of `size` bytes at `offset`: the size is that of the file's format version.

    Returns None without a valid header with this seal.
    """
    if len(data) - offset < size or not data.startswith(BLOCK_MAGIC, offset):
        return None
    end = offset + size - CRC.size
    head = data[offset:end]
    head_checksum: int = crc32c(seal + head)
    if CRC.unpack_from(data, end)[0] != head_checksum:
        return None
    if size == BLOCK_HEAD_SIZE_7:
        _, length, first, count, checksum = BLOCK_HEAD_7.unpack(head)
        return BlockHead(length, first, count, checksum, 0)
    _, length, first, count, checksum, epoch = BLOCK_HEAD.unpack(head)
    return BlockHead(length, first, count, checksum, epoch)


def split_records(data: bytes) -> list[tuple[int, bytes]]:
    """Returns kind and payload of the records of a damaged block, up to the first impossible length."""
    found: list[tuple[int, bytes]] = []
    offset = 0
    while len(data) - offset >= RECORD_HEAD_SIZE:
        length = int.from_bytes(data[offset : offset + 4], "big")
        if length < 1 or length > len(data) - offset - 4:
            break
        found.append((data[offset + 4], data[offset + 5 : offset + 4 + length]))
        offset += 4 + length
    return found


def decode_records(head: BlockHead, data: bytes) -> list[Record]:
    """Decodes all records of a block from its `length` bytes in `data`. BlockError if the block is not complete."""
    if not head.matches(data):
        raise BlockError(0, f"the block of record {head.first} does not match its checksum")
    records: list[Record] = []
    offset: i64 = 0
    size: i64 = len(data)
    lsn = head.first
    while offset < size:
        left = size - offset
        length: i64 = i64(read_i32_be(data, offset)) if left >= RECORD_HEAD_SIZE else 0
        if length < 1 or length > left - 4:
            raise BlockError(int(offset), f"record {lsn} has an impossible length, {length}")
        offset += 4
        records.append(Record(lsn, data[offset], data[offset + 1 : offset + length]))
        offset += length
        lsn += 1
    if len(records) != head.count:
        raise BlockError(int(offset), f"{len(records)} records where {head.count} belong")
    return records
