"""Blocks and records: what one group commit writes.

    block   magic "ATBK" · u32 length · u64 first lsn · u32 count · u32 crc32c · `length` bytes
            of records
    record  u32 length · u64 lsn · u8 kind · payload · u32 crc32c

The block's checksum covers the journal's id and the fields before it, so that a block of another
journal inside a message body is not taken for one of ours. A record's length counts lsn, kind and
payload; its checksum comes last and covers all before it (one call over one piece of memory: 214 ns
against 334 ns for a checksum between length and lsn). A block counts only as a whole.
"""

from __future__ import annotations

import struct
from typing import Final

from google_crc32c import value as crc32c

BLOCK_MAGIC: Final = b"ATBK"
BLOCK_HEAD: Final = struct.Struct(">4sIQI")
BLOCK_HEAD_SIZE: Final = 24
RECORD_HEAD: Final = struct.Struct(">IQB")
RECORD_HEAD_SIZE: Final = 13
CRC: Final = struct.Struct(">I")
CRC_SIZE: Final = 4
# lsn and kind, which a record's length counts beside the payload.
RECORD_FIXED: Final = 9
RECORD_SIZE_MIN: Final = RECORD_HEAD_SIZE + CRC_SIZE
# Keeps every length well inside its u32.
PAYLOAD_SIZE_MAX: Final = 1 << 30


class BlockHead:
    """`length` bytes of `count` records, the first of them with lsn `first`."""

    def __init__(self, length: int, first: int, count: int) -> None:
        self.length = length
        self.first = first
        self.count = count


class Record:
    """One record; `end` is the offset behind it in the bytes it was decoded from."""

    def __init__(self, lsn: int, kind: int, payload: bytes, end: int) -> None:
        self.lsn = lsn
        self.kind = kind
        self.payload = payload
        self.end = end


class BlockError(Exception):
    """A record that is not what the block promises; `offset` counts from the first record."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(why)
        self.offset = offset
        self.why = why


def encode_record(lsn: int, kind: int, payload: bytes) -> bytes:
    """ValueError for a payload over 1 GiB; struct.error for a kind outside 0..255."""
    if len(payload) > PAYLOAD_SIZE_MAX:
        raise ValueError(f"a record of {len(payload)} bytes, at most {PAYLOAD_SIZE_MAX}")
    record = RECORD_HEAD.pack(RECORD_FIXED + len(payload), lsn, kind) + payload
    checksum: int = crc32c(record)
    return record + CRC.pack(checksum)


def encode_block_head(journal_id: bytes, length: int, first: int, count: int) -> bytes:
    """24 bytes; `length` is that of the records, `first` the lsn of the first one."""
    head = BLOCK_HEAD.pack(BLOCK_MAGIC, length, first, count)
    checksum: int = crc32c(journal_id + head)
    return head + CRC.pack(checksum)


def decode_block_head(journal_id: bytes, data: bytes, offset: int = 0) -> BlockHead | None:
    """The header at `offset`, or None when there is no valid one of this journal."""
    if len(data) - offset < BLOCK_HEAD_SIZE or not data.startswith(BLOCK_MAGIC, offset):
        return None
    head = data[offset : offset + BLOCK_HEAD.size]
    checksum: int = crc32c(journal_id + head)
    if CRC.unpack_from(data, offset + BLOCK_HEAD.size)[0] != checksum:
        return None
    _, length, first, count = BLOCK_HEAD.unpack(head)
    return BlockHead(length, first, count)


def record_size(data: bytes, offset: int) -> int:
    """Size of the record at `offset`, by its first 4 bytes, which must be there; not checked."""
    length: int = CRC.unpack_from(data, offset)[0]
    return length - RECORD_FIXED + RECORD_SIZE_MIN


def decode_record(data: bytes, offset: int, lsn: int) -> Record:
    """The record at `offset`, which must have this lsn. BlockError when it is torn or another."""
    if len(data) - offset < RECORD_SIZE_MIN:
        raise BlockError(offset, f"record {lsn} is cut off")
    length, found, kind = RECORD_HEAD.unpack_from(data, offset)
    end = offset + length - RECORD_FIXED + RECORD_SIZE_MIN
    if length < RECORD_FIXED or end > len(data):
        raise BlockError(offset, f"record {lsn} has an impossible length, {length}")
    checksum: int = crc32c(data[offset : end - CRC_SIZE])
    if CRC.unpack_from(data, end - CRC_SIZE)[0] != checksum:
        raise BlockError(offset, f"record {lsn} does not match its checksum")
    if found != lsn:
        raise BlockError(offset, f"record {found} where {lsn} belongs")
    return Record(lsn, kind, data[offset + RECORD_HEAD_SIZE : end - CRC_SIZE], end)


def decode_records(head: BlockHead, data: bytes) -> list[Record]:
    """All records of a block, `data` being its `length` bytes. BlockError at the first bad one."""
    records: list[Record] = []
    offset = 0
    lsn = head.first
    while offset < len(data):
        record = decode_record(data, offset, lsn)
        records.append(record)
        offset = record.end
        lsn += 1
    if len(data) != head.length or len(records) != head.count:
        raise BlockError(offset, f"{len(records)} records where {head.count} belong")
    return records
