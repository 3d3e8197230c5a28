"""AMQP messages as a CORE client sees them: kinds of bodies, headers and properties as Artemis converts them."""

from __future__ import annotations

import pytest

from atalanta.client.encoding import decode_map
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.message import BYTES, DEFAULT, MAP, OBJECT, STREAM, TEXT, Message
from atalanta.message.properties import BYTE, INT, LONG, SHORT, STRING
from atalanta.message.properties import BYTES as BYTES_TYPE
from atalanta.wire.amqp.conversion import core_message
from atalanta.wire.amqp.sections import decode_sections
from tests.wire.amqp.samples import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    DATA,
    FOOTER,
    HEADER,
    NULL,
    PROPERTIES,
    SEQUENCE,
    TRUE,
    VALUE,
    binary,
    listed,
    long,
    mapped,
    mapped_by,
    section,
    symbol,
    text,
    timestamp,
    ubyte,
    uint,
)

NOW = 1_700_000_000_000_000_000
NOW_MS = NOW // 1_000_000
UUID = bytes(range(16))
JAVA = "application/x-java-serialized-object"


def converted(*sections: bytes, expiration_ms: int = 0) -> Message:
    return core_message(decode_sections(b"".join(sections)), "orders", True, expiration_ms, NOW)


def content_type(name: str) -> bytes:
    return section(PROPERTIES, listed(*[NULL] * 6, symbol(name)))


def fields(**values: bytes) -> bytes:
    """The properties section with these fields."""
    names = (
        "message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type", "content_encoding",
        "absolute_expiry_time", "creation_time", "group_id", "group_sequence", "reply_to_group_id",
    )  # fmt: skip
    return section(PROPERTIES, listed(*[values.get(name, NULL) for name in names]))


# -- bodies -------------------------------------------------------------------------------------------
def test_text() -> None:
    message = converted(section(VALUE, text("säge 𝄞")))
    assert (message.kind, message.text()) == (TEXT, "säge 𝄞")
    assert message.properties.get("JMS_AMQP_ORIGINAL_ENCODING") == 5
    assert message.properties.entries["JMS_AMQP_ORIGINAL_ENCODING"][0] == SHORT
    empty = converted(section(VALUE, NULL))
    assert (empty.kind, empty.text()) == (TEXT, None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("text/plain", TEXT),
        ("text/plain; charset=UTF-8", TEXT),
        ('Text/HTML;a=b;charset="utf-8"', TEXT),
        ("application/json", TEXT),
        ("application/vnd.x+xml", TEXT),
        ("text/plain; charset=iso-8859-1", BYTES),
        ("application/octet-stream", BYTES),
        ("image/png", BYTES),
        ("text", BYTES),
        (JAVA, OBJECT),
    ],
)
def test_data_by_content_type(name: str, kind: int) -> None:
    message = converted(content_type(name), section(DATA, binary(b"data")))
    assert message.kind == kind
    wanted = {TEXT: b"\1\0\0\0\x08d\0a\0t\0a\0", BYTES: b"data", OBJECT: b"\0\0\0\4data"}
    assert message.body == wanted[kind]
    assert message.properties.get("JMS_AMQP_ContentType") == name


def test_data_that_is_no_utf_8_stays_bytes() -> None:
    message = converted(content_type("text/plain"), section(DATA, binary(b"\xff")))
    assert (message.kind, message.body) == (BYTES, b"\xff")


def test_data_without_a_content_type_is_bytes() -> None:
    message = converted(section(DATA, binary(b"a")), section(DATA, binary(b"b")))
    assert (message.kind, message.body) == (BYTES, b"ab")


def test_binary_values() -> None:
    assert converted(section(VALUE, binary(b"x"))).kind == BYTES
    assert converted(content_type(JAVA), section(VALUE, binary(b"x"))).body == b"\0\0\0\1x"


def test_maps() -> None:
    nested = mapped(inner=TRUE)
    body = mapped(a=text("x"), b=b"\x54\x05", c=binary(b"y"), d=NULL, e=nested, f=timestamp(7))
    message = converted(section(VALUE, body))
    assert message.kind == MAP
    assert decode_map(message.body) == {
        "a": "x",
        "b": 5,
        "c": b"y",
        "d": None,
        "e": nested,
        "f": 7,
    }


@pytest.mark.parametrize("code", [SEQUENCE, VALUE])
def test_streams(code: int) -> None:
    values = listed(
        text("x"), TRUE, b"\x51\xff", b"\x61\xff\xfe", b"\x54\xfd", long(-4), binary(b"y"), NULL
    )
    message = converted(section(code, values))
    assert message.kind == STREAM
    reader = Reader(message.body)
    assert (reader.int8(), reader.nullable_string()) == (STRING, "x")
    assert (reader.int8(), reader.uint8()) == (2, 255)
    assert (reader.int8(), reader.int8()) == (BYTE, -1)
    assert (reader.int8(), reader.int16()) == (SHORT, -2)
    assert (reader.int8(), reader.int32()) == (INT, -3)
    assert (reader.int8(), reader.int64()) == (LONG, -4)
    assert (reader.int8(), reader.blob()) == (BYTES_TYPE, b"y")
    assert (reader.int8(), reader.nullable_string(), reader.left()) == (STRING, None, 0)


@pytest.mark.parametrize(
    "body",
    [
        section(VALUE, b"\x54\x05"),
        section(VALUE, mapped_by({b"\x54\x05": TRUE})),
        section(SEQUENCE, listed(mapped(a=TRUE), TRUE)),
    ],
)
def test_what_core_has_no_body_for_is_bytes_as_they_came(body: bytes) -> None:
    message = converted(body)
    assert (message.kind, message.body) == (BYTES, body)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (None, BYTES),
        ("application/octet-stream", BYTES),
        ("text/plain", TEXT),
        (JAVA, OBJECT),
        ("a/b", DEFAULT),
    ],
)
def test_no_body(name: str | None, kind: int) -> None:
    message = converted(*([] if name is None else [content_type(name)]))
    assert message.kind == kind
    assert message.properties.get("JMS_AMQP_ORIGINAL_ENCODING") == 1


# -- headers ------------------------------------------------------------------------------------------
def test_header() -> None:
    message = converted(section(HEADER, listed(TRUE, ubyte(200), uint(5_000), TRUE, uint(2))))
    assert (message.durable, message.priority, message.expiration) == (True, 9, NOW_MS + 5_000)
    assert dict(message.properties.items()) == {
        "JMS_AMQP_ORIGINAL_ENCODING": 1,
        "JMS_AMQP_HEADER": True,
        "JMS_AMQP_HEADERDURABLE": True,
        "JMS_AMQP_HEADERPRIORITY": True,
        "JMS_AMQP_FirstAcquirer": True,
        "JMSXDeliveryCount": 3,
    }


def test_without_a_header() -> None:
    message = converted()
    assert (message.priority, message.expiration, message.timestamp) == (4, 0, 0)
    assert message.user_id is None


def test_the_brokers_expiration_counts_before_the_ttl_and_an_absolute_one_before_both() -> None:
    header = section(HEADER, listed(NULL, NULL, uint(5_000)))
    assert converted(header, expiration_ms=17).expiration == 17
    assert (
        converted(header, fields(absolute_expiry_time=timestamp(99)), expiration_ms=17).expiration
        == 99
    )


def test_properties() -> None:
    message = converted(
        fields(
            message_id=text("ID:1"),
            user_id=binary(b"me"),
            subject=text("kind"),
            reply_to=text("back"),
            correlation_id=text("other"),
            content_type=symbol("a/b"),
            content_encoding=symbol("gzip"),
            creation_time=timestamp(1234),
            group_id=text("g"),
            group_sequence=uint(0xFFFFFFFF),
            reply_to_group_id=text("h"),
        )
    )
    assert message.timestamp == 1234
    assert message.group_id == "g"
    assert dict(message.properties.items()) == {
        "JMS_AMQP_ORIGINAL_ENCODING": 1,
        "NATIVE_MESSAGE_ID": "ID:1",
        "_AMQ_VALIDATED_USER": "me",
        "JMSType": "kind",
        "JMSReplyTo": "queue://back",
        "JMSCorrelationID": "other",
        "JMS_AMQP_ContentType": "a/b",
        "JMS_AMQP_ContentEncoding": "gzip",
        "_AMQ_GROUP_ID": "g",
        "_AMQ_GROUP_SEQUENCE": -1,
        "JMS_AMQP_ReplyToGroupID": "h",
    }


@pytest.mark.parametrize(
    ("encoded", "message_id", "correlation"),
    [
        (text("x"), "ID:AMQP_NO_PREFIX:x", "x"),
        (text("ID:x"), "ID:x", "ID:x"),
        (text("ID:AMQP_UUID:x"), "ID:AMQP_STRING:ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x"),
        (b"\x53\x07", "ID:AMQP_ULONG:7", "ID:AMQP_ULONG:7"),
        (binary(b"\x0a\xff"), "ID:AMQP_BINARY:0AFF", b"\x0a\xff"),
        (
            b"\x98" + UUID,
            "ID:AMQP_UUID:00010203-0405-0607-0809-0a0b0c0d0e0f",
            "ID:AMQP_UUID:00010203-0405-0607-0809-0a0b0c0d0e0f",
        ),
    ],
)
def test_identifiers_keep_their_type(
    encoded: bytes, message_id: str, correlation: str | bytes
) -> None:
    message = converted(fields(message_id=encoded, correlation_id=encoded))
    assert message.properties.get("NATIVE_MESSAGE_ID") == message_id
    assert message.properties.get("JMSCorrelationID") == correlation


def test_a_message_id_that_is_a_uuid_is_the_user_id_and_any_other_makes_always_the_same() -> None:
    assert converted(fields(message_id=b"\x98" + UUID)).user_id == UUID
    first, again, other = (converted(fields(message_id=text(name))).user_id for name in "aab")
    assert first == again != other
    assert first is not None and len(first) == 16


def test_unsigned_numbers_become_the_smallest_type_that_holds_them() -> None:
    message = converted(
        section(
            APPLICATION_PROPERTIES,
            mapped(
                a=ubyte(127), b=ubyte(128), c=b"\x60\x7f\xff", d=b"\x60\x80\x00", e=uint(1), f=uint(1 << 31),
                g=b"\x80" + b"\xff" * 8, h=symbol("s"), i=timestamp(5), j=b"\x98" + UUID,
            ),
        )
    )  # fmt: skip
    found = message.properties
    assert [found.get(name) for name in "abcdefghi"] == [
        127,
        128,
        32767,
        32768,
        1,
        1 << 31,
        -1,
        "s",
        5,
    ]
    assert [found.entries[name][0] for name in "abcdefg"] == [BYTE, SHORT, SHORT, INT, INT, LONG, LONG]
    assert found.get("j") == "00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_application_properties_with_a_meaning_of_jms() -> None:
    message = converted(
        section(APPLICATION_PROPERTIES, mapped(JMSXGroupID=text("g"), JMSXGroupSeq=uint(3), _AMQ_DUPL_ID=text("d")))
    )  # fmt: skip
    assert message.group_id == "g" and message.properties.get("_AMQ_GROUP_SEQUENCE") == 3
    assert message.duplicate_id == "d".encode("utf-16-le")


def test_annotations_and_footer() -> None:
    nested = listed(TRUE)
    message = converted(
        section(
            ANNOTATIONS,
            mapped_by(
                {
                    symbol("x-opt-delivery-time"): long(NOW_MS + 10),
                    symbol("x-opt-ingress-time"): long(8),
                    symbol("x-opt-jms-msg-type"): b"\x51\x05",
                    symbol("x-opt-jms-reply-to"): b"\x51\x03",
                    symbol("nested"): nested,
                    symbol("when"): timestamp(5),
                }
            ),
        ),
        fields(reply_to=text("back")),
        section(FOOTER, mapped_by({symbol("sum"): uint(7), symbol("nested"): nested})),
    )
    found = dict(message.properties.items())
    assert message.scheduled_ms == NOW_MS + 10
    assert found["_AMQ_INGRESS_TIMESTAMP"] == 8
    assert found["JMS_AMQP_MA_x-opt-jms-msg-type"] == 5
    assert found["JMS_AMQP_ENCODED_MA_nested"] == nested
    assert found["JMS_AMQP_ENCODED_MA_when"] == timestamp(5)
    assert found["JMSReplyTo"] == "temp-topic://back"
    assert found["JMS_AMQP_FT_sum"] == 7 and found["JMS_AMQP_ENCODED_FT_nested"] == nested


def test_a_delay_has_passed_in_the_queue_that_forwards() -> None:
    message = converted(
        section(ANNOTATIONS, mapped_by({symbol("x-opt-delivery-delay"): long(60_000)}))
    )
    assert message.scheduled_ms == 0


@pytest.mark.parametrize(
    ("code", "name"),
    [(ANNOTATIONS, "annotation key"), (APPLICATION_PROPERTIES, "application-properties key")],
)
def test_keys_of_another_type_are_errors(code: int, name: str) -> None:
    with pytest.raises(DecodeError) as refused:
        converted(section(code, mapped_by({listed(): TRUE})))
    assert refused.value.field == name


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("x-opt-routing-type", b"\x51\x00", MULTICAST),
        ("x-opt-routing-type", b"\x51\x01", ANYCAST),
        ("x-opt-jms-dest", b"\x51\x00", ANYCAST),
        ("x-opt-jms-dest", b"\x51\x01", MULTICAST),
        ("x-opt-jms-dest", b"\x51\x02", ANYCAST),
        ("x-opt-jms-dest", b"\x51\x03", MULTICAST),
        ("x-opt-jms-dest", b"\x51\x09", -1),
        ("x-opt-other", b"\x51\x01", -1),
    ],
)
def test_routing_types(name: str, value: bytes, wanted: int) -> None:
    assert converted(section(ANNOTATIONS, mapped_by({symbol(name): value}))).routing_type == wanted
