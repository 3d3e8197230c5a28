"""A chunk's columns say what its messages say."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from atalanta.message.codec import text_body
from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.message import BYTES, COMPRESSED, MAP, TEXT, Message
from atalanta.message.properties import Byte
from atalanta.wire.core.client.log_columns import TIME_MS_MAX, LogColumns
from atalanta.wire.core.packets.log_chunk import ChunkWriter, ColumnChunk, ColumnChunkWriter

Make = Callable[..., LogColumns]


def rows(*messages: Message, delivery_count: int = 0) -> LogColumns:
    """The columns of LOG_READ_RESP."""
    writer = ChunkWriter()
    for at, message in enumerate(messages):
        message.id = 100 + at
        writer.add(7 + at, delivery_count, message)
    return LogColumns(writer.getvalue(), writer.count)


def column_chunk(*messages: Message, delivery_count: int = 0) -> ColumnChunk:
    writer = ColumnChunkWriter()
    for at, message in enumerate(messages):
        message.id = 100 + at
        writer.add(7 + at, delivery_count, message, True)
    encoded = b"".join(writer.parts())
    return ColumnChunk(b"before" + encoded, 6, 6 + len(encoded), writer.count)


def by_columns(*messages: Message, delivery_count: int = 0) -> LogColumns:
    """The columns of LOG_READ_COLUMNS_RESP."""
    found = column_chunk(*messages, delivery_count=delivery_count)
    return LogColumns(found.data, found.count, found)


@pytest.fixture(params=[rows, by_columns], ids=["rows", "columns"])
def chunk(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def test_one_value_an_entry(chunk: Make) -> None:
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


def test_what_needs_the_messages_is_told(chunk: Make) -> None:
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


def test_times_beyond_what_microseconds_hold_are_the_last_there_is(chunk: Make) -> None:
    message = Message.create("a", b"", timestamp_ms=(1 << 63) - 1)
    message.expiration = -(1 << 63)
    columns = chunk(message)
    assert struct.unpack("<q", columns.timestamps) == (TIME_MS_MAX * 1000,)
    assert struct.unpack("<q", columns.expirations) == (-TIME_MS_MAX * 1000,)


def test_no_entries(chunk: Make) -> None:
    assert chunk().sequences == chunk().edges == chunk().redelivered == b""


def test_whatever_is_cut_off_or_too_much_is_refused() -> None:
    message = Message.create("orders", b"abc", BYTES)
    message.user_id = bytes(16)
    message.put_property("n", "text")
    whole = rows(message).data
    for size in range(len(whole)):
        with pytest.raises(DecodeError):
            LogColumns(whole[:size], 1)
    with pytest.raises(DecodeError, match="too many"):
        LogColumns(whole + b"\0", 1)
    for position in range(12, 20):  # the lengths of entry and body
        with pytest.raises(DecodeError):
            LogColumns(whole[:position] + b"\xff" + whole[position + 1 :], 1)


def test_bodies_by_columns_lie_one_behind_the_other() -> None:
    columns = by_columns(Message.create("a", b"abc", BYTES), Message.create("b", b""), Message.create("a", b"xy"))
    assert struct.unpack("<4i", columns.body_ends) == (0, 3, 3, 5)
    assert columns.data[columns.bodies_at :] == b"abcxy" and columns.body_bytes == 5
    assert rows(Message.create("a", b"abc")).bodies_at == -1


def test_addresses_that_differ_late_or_in_length_are_others(chunk: Make) -> None:
    names = ["orders.europe", "orders.eurasia", "orders.europa", "orders.europ", "", "orders.europe", "orders.europe"]
    columns = chunk(*(Message.create(name, b"") for name in names))
    numbers = struct.unpack("<7i", columns.address_numbers)
    assert [columns.addresses[number] for number in numbers] == names


def test_a_chunk_by_columns_has_the_entries_of_one_by_rows() -> None:
    messages = [Message.create("a", bytes(at), BYTES, at % 2 == 0, 1000 * at) for at in range(5)]
    messages[3].put_property("n", "text")
    chunk = column_chunk(*messages, delivery_count=3)
    assert chunk.rows() == rows(*messages, delivery_count=3).data
    assert [(entry.sequence, entry.delivery_count) for entry in chunk.entries()] == [(7 + at, 3) for at in range(5)]


def test_a_chunk_by_columns_that_is_cut_off_or_damaged_is_refused() -> None:
    message = Message.create("orders", b"abc", BYTES)
    message.user_id = bytes(16)
    message.put_property("n", "text")
    whole = column_chunk(message, message).encoded
    for size in range(len(whole)):
        with pytest.raises(DecodeError):
            ColumnChunk(whole[:size], 0, size, 2)
    with pytest.raises(DecodeError, match="too many"):
        ColumnChunk(whole + b"\0", 0, len(whole) + 1, 2)
    for count in (-1, 3, 1 << 40):
        with pytest.raises(DecodeError):
            ColumnChunk(whole, 0, len(whole), count)
    for position in range(2 * 20, 2 * 20 + 24):  # the ends of heads and bodies
        for byte in (b"\xff", b"\x7f"):
            damaged = whole[:position] + byte + whole[position + 1 :]
            if damaged != whole:
                with pytest.raises(DecodeError):
                    found = ColumnChunk(damaged, 0, len(damaged), 2)
                    LogColumns(found.data, 2, found)
