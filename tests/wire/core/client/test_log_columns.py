"""A chunk's columns say what its messages say."""

from __future__ import annotations

import struct

import pytest

from atalanta.message.codec import text_body
from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.message import BYTES, COMPRESSED, MAP, TEXT, Message
from atalanta.message.properties import Byte
from atalanta.wire.core.client.log_columns import TIME_MS_MAX, LogColumns
from atalanta.wire.core.packets.log_chunk import ChunkWriter


def chunk(*messages: Message, delivery_count: int = 0) -> LogColumns:
    writer = ChunkWriter()
    for at, message in enumerate(messages):
        message.id = 100 + at
        writer.add(7 + at, delivery_count, message)
    return LogColumns(writer.getvalue(), writer.count)


def test_one_value_an_entry() -> None:
    first = Message.create("orders", b"abc", BYTES, True, 1_700_000_000_123, 9)
    first.user_id = bytes(range(16))
    first.put_property("_AMQ_ROUTING_TYPE", Byte(1))
    second = Message.create("orders", b"", MAP, False, 0, 0)
    second.expiration = 5
    third = Message.create("bills", b"xy", BYTES)
    columns = chunk(first, second, third, delivery_count=2)
    assert columns.addresses == ["orders", "bills"]
    assert struct.unpack("<3i", columns.address_numbers) == (0, 0, 1)
    assert struct.unpack("<3q", columns.sequences) == (7, 8, 9)
    assert struct.unpack("<3q", columns.ids) == (100, 101, 102)
    assert struct.unpack("<3q", columns.timestamps) == (1_700_000_000_123_000, 0, 0)
    assert struct.unpack("<3q", columns.expirations) == (0, 5000, 0)
    assert (columns.kinds, columns.durable) == (bytes([BYTES, MAP, BYTES]), b"\1\0\1")
    assert (columns.priorities, columns.redelivered) == (b"\x09\0\4", b"\1\1\1")
    assert columns.has_user_id == b"\1\0\0" and columns.user_ids[:16] == bytes(range(16))
    edges = struct.unpack("<6i", columns.edges)
    bodies = [columns.data[edges[at] : edges[at + 1]] for at in (0, 2, 4)]
    assert bodies == [b"abc", b"", b"xy"]
    assert columns.bare and not columns.any_text


def test_what_needs_the_messages_is_told() -> None:
    with_property = Message.create("a", b"", BYTES)
    with_property.put_property("n", 1)
    grouped = Message.create("a", b"", BYTES)
    grouped.put_property("_AMQ_GROUP_ID", "g")
    routed_strangely = Message.create("a", b"", BYTES)
    routed_strangely.put_property("_AMQ_ROUTING_TYPE", Byte(5))
    nearly_routed = Message.create("a", b"", BYTES)
    nearly_routed.put_property("_AMQ\u035fROUTING_TYPE", Byte(1))
    for message in (with_property, grouped, routed_strangely, nearly_routed):
        assert not chunk(message, Message.create("a", b"")).bare
    assert chunk(Message.create("a", text_body("x"), TEXT)).any_text
    compressed = Message.create("a", b"", BYTES)
    compressed.put_property(COMPRESSED, True)
    assert chunk(grouped, compressed).any_compressed
    quoted = Message.create("a", COMPRESSED.encode("utf-16-le"), BYTES)
    assert not chunk(grouped, quoted).any_compressed


def test_times_beyond_what_microseconds_hold_are_the_last_there_is() -> None:
    message = Message.create("a", b"", timestamp_ms=(1 << 63) - 1)
    message.expiration = -(1 << 63)
    columns = chunk(message)
    assert struct.unpack("<q", columns.timestamps) == (TIME_MS_MAX * 1000,)
    assert struct.unpack("<q", columns.expirations) == (-TIME_MS_MAX * 1000,)


def test_no_entries() -> None:
    assert LogColumns(b"", 0).sequences == b""


def test_whatever_is_cut_off_or_too_much_is_refused() -> None:
    message = Message.create("orders", b"abc", BYTES)
    message.user_id = bytes(16)
    message.put_property("n", "text")
    whole = chunk(message).data
    for size in range(len(whole)):
        with pytest.raises(DecodeError):
            LogColumns(whole[:size], 1)
    with pytest.raises(DecodeError, match="too many"):
        LogColumns(whole + b"\0", 1)
    for position in range(12, 20):  # the lengths of entry and body
        with pytest.raises(DecodeError):
            LogColumns(whole[:position] + b"\xff" + whole[position + 1 :], 1)
