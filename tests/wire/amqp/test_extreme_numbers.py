"""Numbers at the limits of their types in AMQP messages that nodes forward: the CORE message can be sent."""

from __future__ import annotations

import pytest

from atalanta.message.codec import decode_message, encode_message
from atalanta.message.encoding.buffer import Reader
from atalanta.wire.amqp.conversion import core_message
from atalanta.wire.amqp.sections import decode_sections
from tests.kernel.broker_rig import Bench
from tests.wire.amqp.samples import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    HEADER,
    NULL,
    PROPERTIES,
    TRUE,
    listed,
    long,
    mapped_by,
    section,
    symbol,
    text,
    timestamp,
    ubyte,
    uint,
)


def ulong(value: int) -> bytes:
    return b"\x80" + value.to_bytes(8, "big")


LONGS = (-(2**63), -1, 0, 2**15, 2**16, 2**31 - 1, 2**31, 2**63 - 1)


@pytest.mark.parametrize("value", LONGS)
def test_the_message_arrives(value: int) -> None:
    bench = Bench()
    number = uint(value & 0xFFFFFFFF)
    sections = b"".join(
        (
            section(HEADER, listed(TRUE, ubyte(value & 0xFF), number, TRUE, number)),
            section(
                ANNOTATIONS,
                mapped_by(
                    {
                        symbol("x-opt-delivery-time"): long(value),
                        symbol("x-opt-ingress-time"): ulong(value % 2**64),
                        symbol("x-opt-routing-type"): long(value or 1),
                        symbol("x-opt-jms-dest"): long(value),
                    }
                ),
            ),
            section(PROPERTIES, listed(*[NULL] * 8, timestamp(value), timestamp(value), text("g"), number, NULL)),
            section(
                APPLICATION_PROPERTIES,
                mapped_by({text("JMSXGroupSeq"): ulong(value % 2**64), text("u"): ulong(value % 2**64)}),
            ),
        )
    )
    message = core_message(decode_sections(sections), "orders", True, 0, bench.now)
    sent = decode_message(Reader(encode_message(message, 7)))
    assert 0 <= sent.priority <= 9 and sent.timestamp == value
    bench.queue("orders")
    bench.session().send(bench.now, sent, 1)
    bench.settle()
    assert bench.broker.queues["orders"].message_count == 1
    bench.restart()
    assert bench.broker.queues["orders"].message_count == 1
