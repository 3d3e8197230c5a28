"""The sections of an AMQP message, and what is wrong with one that cannot be read."""

from __future__ import annotations

import pytest

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.amqp.sections import Sections, decode_sections
from tests.wire.amqp.samples import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    NULL,
    PROPERTIES,
    SEQUENCE,
    TRUE,
    VALUE,
    binary,
    listed,
    mapped,
    mapped_by,
    section,
    symbol,
    text,
    timestamp,
    ubyte,
    uint,
)


def test_all_sections() -> None:
    annotations = mapped_by({symbol("x-opt-jms-dest"): b"\x51\x01"})
    found = decode_sections(
        section(HEADER, listed(TRUE, ubyte(7), uint(60_000), TRUE, uint(2)))
        + section(DELIVERY_ANNOTATIONS, annotations)
        + section(ANNOTATIONS, annotations)
        + section(PROPERTIES, listed(text("id"), binary(b"me"), text("orders"), NULL, text("back")))
        + section(APPLICATION_PROPERTIES, mapped(colour=text("red")))
        + section(VALUE, text("hello"))
        + section(FOOTER, annotations)
    )
    assert found.header is not None and found.properties is not None
    assert (found.header.durable, found.header.priority, found.header.ttl) == (True, 7, 60_000)
    assert (found.header.first_acquirer, found.header.delivery_count) == (True, 2)
    assert found.annotations is not None and found.annotations.get("x-opt-jms-dest") == 1
    assert found.properties.message_id == "id" and found.properties.user_id == b"me"
    assert found.properties.to == "orders" and found.properties.reply_to == "back"
    assert found.properties.subject is None and found.properties.group_id is None
    assert found.application_properties is not None
    assert found.application_properties.get("colour") == "red"
    assert found.value == "hello" and found.body == section(VALUE, text("hello"))
    assert found.footer is not None


def test_descriptors_may_be_symbols() -> None:
    found = decode_sections(b"\x00" + symbol("amqp:amqp-value:*") + text("x"))
    assert found.value == "x"
    long_form = b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x77" + text("x")
    assert decode_sections(long_form).value == "x"


def test_sections_of_data_and_sequences_may_repeat() -> None:
    assert decode_sections(section(DATA, binary(b"a")) + section(DATA, binary(b"b"))).data == [
        b"a",
        b"b",
    ]
    two = section(SEQUENCE, listed(TRUE)) + section(SEQUENCE, listed(NULL))
    found = decode_sections(two)
    assert found.sequence == [True, None] and found.body == two


def test_nothing_is_a_message_without_a_body() -> None:
    assert decode_sections(b"") == Sections()


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"\x40", "section"),
        (section(0x79, NULL), "section"),
        (b"\x00" + symbol("amqp:wrong:list") + NULL, "section"),
        (section(HEADER, text("x")), "header"),
        (section(HEADER, listed(text("yes"))), "header.durable"),
        (section(HEADER, listed(NULL, uint(3))), "header.priority"),
        (section(PROPERTIES, listed(TRUE)), "properties.message-id"),
        (section(PROPERTIES, listed(NULL, NULL, TRUE)), "properties.to"),
        (section(PROPERTIES, listed(*[NULL] * 8, uint(5))), "properties.absolute-expiry-time"),
        (section(PROPERTIES, listed(*[NULL] * 8, timestamp(5))[:-1]), "properties"),
        (section(APPLICATION_PROPERTIES, listed(text("x"))), "application-properties"),
        (section(DATA, text("x")), "data"),
        (section(VALUE, text("x")) + section(VALUE, text("x")), "amqp-value"),
        (section(VALUE, text("x")) + section(DATA, binary(b"x")), "data"),
        (section(FOOTER, text("x")), "footer"),
    ],
)
def test_errors_name_section_and_field(data: bytes, field: str) -> None:
    with pytest.raises(DecodeError) as refused:
        decode_sections(data)
    assert refused.value.field == field
