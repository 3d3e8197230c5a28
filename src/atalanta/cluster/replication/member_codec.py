"""The frames between two members of a group, after their handshake (member_handshake.py).

    u32 size of what follows · u8 type · body

Numbers are big-endian; an lsn, a file number and a size have 8 bytes.

    OFFER        epoch · last · commit · forced epoch · lease_ns · u32 count · count * (epoch · lsn)
    BLOCK        epoch · first · last · commit · segment · offset · the block up to the end
    SEGMENT      number · size · header
    DROP         number          JUMP  nothing
    HEARTBEAT    epoch · sent_ns · commit · clock_ns
    HAND_OVER    epoch · lsn · version · clock_ns · register
    ENDED        epoch · clock_ns
    PAGE         number · the file up to the end
    LARGE        file · offset · bytes up to the end
    LARGE_SYNC   file · size
    DELETE       u8 kind · number · lsn
    KEEP         lsn · u32 count · count * page · u32 count · count * large file
    SETTINGS     the file up to the end
    GUARD        epoch · u16 port · 16 bytes of salt
    ANSWER       epoch · last · durable · sent_ns
    REFUSAL      epoch
    REQUEST      epoch
    FILES        u32 count · count * (page · size · u32 checksum of the table) · u32 count · count * (large file · size)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

from atalanta.ha.register import RegisterDamaged, decode_register, encode_register
from atalanta.ha.replication.block_stream import BlockItem, DropItem, JumpItem, SegmentItem
from atalanta.ha.replication.messages import (
    Answer,
    Block,
    Ended,
    HandOver,
    Heartbeat,
    Offer,
    Refusal,
)
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.store.segment import SEGMENT_HEAD_SIZE

SIZE_SIZE: Final = 4
# A page file is one frame, and the block of one large record is. Only what has arrived takes memory.
FRAME_SIZE_MAX: Final = 1 << 30
# The bytes of a large body in one frame.
LARGE_PART_SIZE: Final = 256 * 1024
SALT_SIZE: Final = 16

OFFER: Final = 1
BLOCK: Final = 2
SEGMENT: Final = 3
DROP: Final = 4
JUMP: Final = 5
HEARTBEAT: Final = 6
HAND_OVER: Final = 7
ENDED: Final = 8
PAGE: Final = 9
LARGE: Final = 10
LARGE_SYNC: Final = 11
DELETE: Final = 12
KEEP: Final = 13
SETTINGS: Final = 14
GUARD: Final = 15
ANSWER: Final = 32
REFUSAL: Final = 33
FILES: Final = 34
REQUEST: Final = 35

# Kinds of files in DELETE.
PAGE_FILE: Final = 1
LARGE_FILE: Final = 2

PAIR: Final = struct.Struct(">QQ")
PAGE_ENTRY: Final = struct.Struct(">QQI")
NUMBER: Final = struct.Struct(">Q")
COUNT: Final = struct.Struct(">I")
FRAME_HEAD: Final = struct.Struct(">IB")


@dataclass(frozen=True)
class JournalBlock:
    """A block of the journal: the message of the rules, and its bytes with their place."""

    block: Block
    item: BlockItem


@dataclass(frozen=True)
class PageFile:
    """A page file, whole."""

    number: int
    data: bytes


@dataclass(frozen=True)
class LargeData:
    """Bytes of a large body at `offset` of its file. Offset 0 begins the file anew."""

    file: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class LargeEnd:
    """The end of a large body: all `size` bytes were sent, and records behind it may need them."""

    file: int
    size: int


@dataclass(frozen=True)
class FileDeletion:
    """The deletion of a file, as soon as the follower has everything up to `lsn` on its disk."""

    kind: int
    number: int
    lsn: int


@dataclass(frozen=True)
class KeptFiles:
    """The files of the active node. A follower deletes its others when it has everything up to `lsn` on its disk."""

    lsn: int
    pages: tuple[int, ...]
    large: tuple[int, ...]


@dataclass(frozen=True)
class SettingsFile:
    """The content of the stored management settings, b"" without any."""

    data: bytes


@dataclass(frozen=True)
class Guard:
    """The guard of the process that is active in `epoch`. It listens at the host that the follower has dialled.

    It proves the end of the process to those who know the secret: that follows from the cluster password and the salt.
    """

    epoch: int
    port: int
    salt: bytes


@dataclass(frozen=True)
class StoredFiles:
    """The files of a follower: (number, size, checksum of the table) of each page file, (number, size) of each body."""

    pages: tuple[tuple[int, int, int], ...]
    large: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ServiceRequest:
    """An operator wants the follower to serve: the active node of `epoch` hands over when it has everything."""

    epoch: int


FromActive: TypeAlias = (
    Offer | JournalBlock | SegmentItem | DropItem | JumpItem | Heartbeat | HandOver | Ended | PageFile | LargeData
    | LargeEnd | FileDeletion | KeptFiles | SettingsFile | Guard
)  # fmt: skip
FromFollower: TypeAlias = Answer | Refusal | StoredFiles | ServiceRequest
MemberMessage: TypeAlias = FromActive | FromFollower


# --- frames -----------------------------------------------------------------------------------------


class MemberFramer:
    """Cuts the bytes of a connection into frames; the bytes come in pieces of any size."""

    def __init__(self, frame_size_max: int = FRAME_SIZE_MAX) -> None:
        self._size_max = frame_size_max
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        """Adds received bytes."""
        self._bytes += data

    def next(self) -> bytes | None:
        """Returns the next frame, type and body; None until it is complete. DecodeError for a wrong size."""
        kept = self._bytes
        if len(kept) < SIZE_SIZE:
            return None
        size = int.from_bytes(kept[:SIZE_SIZE], "big")
        if not 1 <= size <= self._size_max:
            raise DecodeError("frame", 0, f"a size of {size} bytes, 1 to {self._size_max} are possible")
        if len(kept) < SIZE_SIZE + size:
            return None
        frame = bytes(memoryview(kept)[SIZE_SIZE : SIZE_SIZE + size])
        del kept[: SIZE_SIZE + size]
        return frame


def _frame(code: int, *parts: bytes) -> bytes:
    size = 1 + sum([len(part) for part in parts])
    if size > FRAME_SIZE_MAX:
        raise ValueError(f"a frame of {size} bytes, at most {FRAME_SIZE_MAX}")
    return b"".join((FRAME_HEAD.pack(size, code), *parts))


def _numbers(*values: int) -> bytes:
    return b"".join([value.to_bytes(8, "big") for value in values])


# --- encoding ---------------------------------------------------------------------------------------


def encode_message(message: MemberMessage) -> bytes:
    """Encodes a message as a frame. ValueError if it is too large."""
    if isinstance(message, JournalBlock):
        block, item = message.block, message.item
        numbers = _numbers(block.epoch, block.first, block.last, block.commit, item.number, item.offset)
        return _frame(BLOCK, numbers, item.data)
    if isinstance(message, Answer):
        sent = message.sent_ns.to_bytes(8, "big", signed=True)
        return _frame(ANSWER, _numbers(message.epoch, message.last, message.durable), sent)
    if isinstance(message, Heartbeat):
        return _frame(HEARTBEAT, _numbers(message.epoch, message.sent_ns, message.commit, message.clock_ns))
    if isinstance(message, LargeData):
        return _frame(LARGE, _numbers(message.file, message.offset), message.data)
    if isinstance(message, PageFile):
        return _frame(PAGE, _numbers(message.number), message.data)
    if isinstance(message, SegmentItem):
        return _frame(SEGMENT, _numbers(message.number, message.size), message.head)
    return _encode_rare(message)


def _encode_rare(message: MemberMessage) -> bytes:
    if isinstance(message, Offer):
        head = _numbers(message.epoch, message.last, message.commit, message.forced_epoch, message.lease_ns)
        entries = [PAIR.pack(epoch, lsn) for epoch, lsn in message.table]
        return _frame(OFFER, head, COUNT.pack(len(entries)), *entries)
    if isinstance(message, DropItem):
        return _frame(DROP, _numbers(message.first))
    if isinstance(message, JumpItem):
        return _frame(JUMP)
    if isinstance(message, HandOver):
        numbers = _numbers(message.epoch, message.lsn, message.version, message.clock_ns)
        return _frame(HAND_OVER, numbers, encode_register(message.register))
    if isinstance(message, Ended):
        return _frame(ENDED, _numbers(message.epoch, message.clock_ns))
    if isinstance(message, Refusal):
        return _frame(REFUSAL, _numbers(message.epoch))
    if isinstance(message, ServiceRequest):
        return _frame(REQUEST, _numbers(message.epoch))
    if isinstance(message, LargeEnd):
        return _frame(LARGE_SYNC, _numbers(message.file, message.size))
    if isinstance(message, FileDeletion):
        return _frame(DELETE, bytes([message.kind]), _numbers(message.number, message.lsn))
    return _encode_files(message)


def _encode_files(message: MemberMessage) -> bytes:
    if isinstance(message, StoredFiles):
        pages = [PAGE_ENTRY.pack(*entry) for entry in message.pages]
        bodies = [PAIR.pack(*entry) for entry in message.large]
        return _frame(FILES, COUNT.pack(len(pages)), *pages, COUNT.pack(len(bodies)), *bodies)
    if isinstance(message, KeptFiles):
        counts = COUNT.pack(len(message.pages)), COUNT.pack(len(message.large))
        return _frame(
            KEEP, _numbers(message.lsn), counts[0], _numbers(*message.pages), counts[1], _numbers(*message.large)
        )
    if isinstance(message, SettingsFile):
        return _frame(SETTINGS, message.data)
    if isinstance(message, Guard):
        return _frame(GUARD, _numbers(message.epoch), message.port.to_bytes(2, "big"), message.salt)
    raise TypeError(f"no message between members: {type(message).__name__}")


# --- decoding ---------------------------------------------------------------------------------------


def decode_from_active(frame: bytes) -> FromActive:
    """Decodes a frame of the active node, type and body. DecodeError."""
    reader = Reader(frame)
    code = reader.uint8("type")
    message: FromActive
    if code == BLOCK:
        block = Block(_number(reader, "epoch"), _lsn(reader), _lsn(reader), _lsn(reader))
        number, offset = _number(reader, "segment"), _number(reader, "offset")
        return JournalBlock(block, BlockItem(number, offset, reader.rest(), block.last))
    if code == HEARTBEAT:
        epoch, sent_ns, commit = _number(reader, "epoch"), _number(reader, "sent_ns"), _lsn(reader)
        message = Heartbeat(epoch, sent_ns, commit, _number(reader, "clock_ns"))
    elif code == LARGE:
        return LargeData(_number(reader, "file"), _number(reader, "offset"), reader.rest())
    elif code == PAGE:
        return PageFile(_number(reader, "page"), reader.rest())
    elif code == SEGMENT:
        message = SegmentItem(
            _number(reader, "segment"), _number(reader, "size"), reader.take(SEGMENT_HEAD_SIZE, "header")
        )
    elif code == DROP:
        message = DropItem(_number(reader, "segment"))
    elif code == JUMP:
        message = JumpItem()
    elif code == LARGE_SYNC:
        message = LargeEnd(_number(reader, "file"), _number(reader, "size"))
    elif code == DELETE:
        message = _deletion(reader)
    else:
        message = _decode_rare(code, reader)
    _end(reader)
    return message


def _decode_rare(code: int, reader: Reader) -> FromActive:
    if code == OFFER:
        epoch, last, commit, forced = _number(reader, "epoch"), _lsn(reader), _lsn(reader), _number(reader, "epoch")
        lease_ns = _number(reader, "lease_ns")
        return Offer(epoch, _epochs(reader), last, commit, forced, lease_ns)
    if code == HAND_OVER:
        epoch, lsn, version = _number(reader, "epoch"), _lsn(reader), _number(reader, "version")
        clock_ns = _number(reader, "clock_ns")
        start = int(reader.position)
        try:
            return HandOver(epoch, lsn, version, decode_register(reader.rest()), clock_ns)
        except RegisterDamaged as error:
            raise DecodeError("register", start, str(error)) from None
    if code == ENDED:
        return Ended(_number(reader, "epoch"), _number(reader, "clock_ns"))
    if code == KEEP:
        return KeptFiles(_lsn(reader), _file_numbers(reader, "page"), _file_numbers(reader, "large file"))
    if code == SETTINGS:
        return SettingsFile(reader.rest())
    if code == GUARD:
        epoch = _number(reader, "epoch")
        return Guard(epoch, int.from_bytes(reader.take(2, "port"), "big"), reader.take(SALT_SIZE, "salt"))
    raise DecodeError("type", 0, f"{code} is no frame of an active node")


def decode_from_follower(frame: bytes) -> FromFollower:
    """Decodes a frame of a follower, type and body. DecodeError."""
    reader = Reader(frame)
    code = reader.uint8("type")
    message: FromFollower
    if code == ANSWER:
        epoch, last, durable = _number(reader, "epoch"), _lsn(reader), _lsn(reader)
        if durable > last:
            raise DecodeError("durable", int(reader.position), f"{durable} of {last} records")
        message = Answer(epoch, last, durable, reader.int64("sent_ns"))
    elif code == REFUSAL:
        message = Refusal(_number(reader, "epoch"))
    elif code == REQUEST:
        message = ServiceRequest(_number(reader, "epoch"))
    elif code == FILES:
        pages = list(PAGE_ENTRY.iter_unpack(_entries(reader, "page", PAGE_ENTRY.size)))
        large = list(PAIR.iter_unpack(_entries(reader, "large file", PAIR.size)))
        message = StoredFiles(tuple(pages), tuple(large))
    else:
        raise DecodeError("type", 0, f"{code} is no frame of a follower")
    _end(reader)
    return message


def _number(reader: Reader, what: str) -> int:
    value = reader.int64(what)
    if value < 0:
        raise DecodeError(what, int(reader.position) - 8, f"{value} is negative")
    return value


def _lsn(reader: Reader) -> int:
    return _number(reader, "lsn")


def _entries(reader: Reader, what: str, size: int) -> bytes:
    """Returns the bytes of as many entries as the count before them says."""
    return reader.take(reader.count(what, size) * size, what)


def _epochs(reader: Reader) -> tuple[tuple[int, int], ...]:
    """Returns an epoch table: ascending in both, as the rules take it."""
    start = int(reader.position)
    table: list[tuple[int, int]] = list(PAIR.iter_unpack(_entries(reader, "epochs", PAIR.size)))
    for before, after in zip(table, table[1:], strict=False):
        if after[0] <= before[0] or after[1] <= before[1]:
            raise DecodeError("epochs", start, f"{after} after {before}")
    return tuple(table)


def _file_numbers(reader: Reader, what: str) -> tuple[int, ...]:
    return tuple([entry[0] for entry in NUMBER.iter_unpack(_entries(reader, what, NUMBER.size))])


def _deletion(reader: Reader) -> FileDeletion:
    kind = reader.uint8("kind")
    if kind not in (PAGE_FILE, LARGE_FILE):
        raise DecodeError("kind", 1, f"{kind} is no kind of file")
    return FileDeletion(kind, _number(reader, "file"), _lsn(reader))


def _end(reader: Reader) -> None:
    if reader.left():
        raise DecodeError("frame", int(reader.position), f"{reader.left()} bytes are left over")
