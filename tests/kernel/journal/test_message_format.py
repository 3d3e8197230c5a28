"""The format byte of stored messages: kept through restart and compaction, and an unknown one ends the start."""

from __future__ import annotations

import pytest
from librt.strings import BytesWriter

from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import (
    decode_message_record,
    decode_plain_message,
    encode_message_record,
    write_plain_message,
)
from atalanta.kernel.queue.paging.page import decode_block, write_entry
from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.message import FORMAT_CORE
from tests.kernel.broker_rig import Bench, consume, endpoint

# Bytes before the format byte: of a MESSAGE record with one route and no duplicate ids, of a PLAIN_MESSAGE, and of a
# page entry without route ids.
MESSAGE_OFFSET = 4 + 24 + 4
PLAIN_OFFSET = 28
PAGE_OFFSET = 17
UNKNOWN = "message format 7 is unknown: this version reads 0"


def stored(bench: Bench) -> Bench:
    bench.queue("orders")
    session = bench.session()
    session.send(bench.now, bench.message("orders", b"body"), 1)
    bench.settle()
    return bench


def with_byte(data: bytes, offset: int) -> bytes:
    assert data[offset] == FORMAT_CORE
    return data[:offset] + b"\x07" + data[offset + 1 :]


def test_all_three_layouts_state_the_format() -> None:
    bench = stored(Bench())
    (reference,) = bench.broker.queues["orders"].references
    message = reference.message
    plain = BytesWriter()
    write_plain_message(plain, message, reference)
    entry = BytesWriter()
    write_entry(entry, reference)
    record = encode_message_record(message, [reference], [])
    assert decode_plain_message(plain.getvalue()).message.format == FORMAT_CORE
    assert decode_block(entry.getvalue())[0].message.format == FORMAT_CORE
    assert decode_message_record(record).message.format == FORMAT_CORE
    for data, offset in ((plain.getvalue(), PLAIN_OFFSET), (entry.getvalue(), PAGE_OFFSET)):
        with pytest.raises(DecodeError, match=UNKNOWN):
            (decode_plain_message if offset == PLAIN_OFFSET else decode_block)(with_byte(data, offset))
    with pytest.raises(DecodeError, match=UNKNOWN):
        decode_message_record(with_byte(record, MESSAGE_OFFSET))


def test_a_journal_with_an_unknown_format_is_refused_at_recovery() -> None:
    bench = stored(Bench())
    for at, (lsn, kind, payload) in enumerate(bench.journal.records):
        if kind == records.MESSAGE:
            bench.journal.records[at] = (lsn, kind, with_byte(payload, MESSAGE_OFFSET))
    with pytest.raises(DecodeError, match=UNKNOWN):
        bench.restart()


def test_messages_keep_their_format_through_restart_and_compaction() -> None:
    bench = stored(Bench())
    bench.compact(bench.journal.last)
    bench.restart()
    session = bench.session()
    consume(session, bench, "orders")
    bench.settle()
    assert endpoint(session).bodies() == [b"body"]
    (message,) = bench.broker.store.messages.values()
    assert message.format == FORMAT_CORE
    assert message.copy(99).format == FORMAT_CORE
