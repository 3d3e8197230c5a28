"""Decoders of the AMQP messages that peers forward: the sections, the wrapper, and the pieces of large ones."""

from __future__ import annotations

from atalanta.kernel.ports import Trace
from atalanta.message.codec import encode_message
from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.message import EMBEDDED, Message
from atalanta.wire.amqp.conversion import core_message
from atalanta.wire.amqp.embedded_message import LARGE_PROPERTY, unwrap
from atalanta.wire.amqp.large_embedded_message import pieces_of
from atalanta.wire.amqp.sections import decode_sections
from tests.fuzz.target import Target
from tests.wire.amqp.samples import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    DATA,
    FOOTER,
    HEADER,
    PROPERTIES,
    SEQUENCE,
    TRUE,
    VALUE,
    binary,
    captured,
    large_embedded,
    listed,
    mapped,
    mapped_by,
    section,
    symbol,
    text,
    timestamp,
    ubyte,
    uint,
    wrapped,
)

NOW = 1_700_000_000_000_000_000
KINDS = ("text", "map", "stream", "object", "bytes")
WORDS = (
    b"\x00\x53\x70", b"\x00\x53\x75", b"\x00\x53\x77", b"\xd0", b"\xd1", b"\xf0", b"\xe0", b"\x45", b"\x40",
    b"x-opt-jms-dest", b"x-opt-delivery-time", b"text/plain", b"_AMQ_ROUTE_TO",
)  # fmt: skip


class Silence(Trace):
    """Events of unreadable messages are expected here."""

    def event(self, name: str, fields: dict[str, object]) -> None:
        repr((name, fields))


def sample_sections() -> list[bytes]:
    """Messages with every section, and every kind of body."""
    annotations = mapped_by(
        {symbol("x-opt-jms-dest"): b"\x51\x01", symbol("x-opt-delivery-time"): timestamp(7)}
    )
    fields = listed(
        text("ID:1"), binary(b"me"), text("to"), text("subject"), text("back"), b"\x98" + bytes(16),
        symbol("text/plain"), symbol("gzip"), timestamp(8), timestamp(9), text("group"), uint(3), text("other"),
    )  # fmt: skip
    before = (
        section(HEADER, listed(TRUE, ubyte(7), uint(60_000), TRUE, uint(2)))
        + section(ANNOTATIONS, annotations)
        + section(PROPERTIES, fields)
        + section(APPLICATION_PROPERTIES, mapped(a=text("b"), c=listed(TRUE), d=mapped(e=TRUE)))
    )
    bodies = (
        section(DATA, binary(b"data")),
        section(SEQUENCE, listed(TRUE, text("x"), b"\xe0\x04\x02\x51\x01\xff")),
        section(VALUE, mapped(a=TRUE, b=listed())),
        section(VALUE, b"\x00\xa3\x01u" + text("described")),
    )
    return [before + body + section(FOOTER, annotations) for body in bodies]


class AmqpTarget(Target):
    """The sections of a message, and its conversion."""

    name = "amqp"
    refusals = (DecodeError,)
    words = WORDS

    def seeds(self) -> list[bytes]:
        return sample_sections()

    def run(self, data: bytes) -> None:
        message = core_message(decode_sections(data), "orders", True, 0, NOW)
        encode_message(message, 7)
        repr((message.group_id, message.duplicate_id, message.scheduled_ms, message.routing_type))


class EmbeddedTarget(Target):
    """The body of a message of type 7: nothing in it is an error of its sender."""

    name = "embedded"
    words = WORDS

    def seeds(self) -> list[bytes]:
        return [wrapped(each) for each in sample_sections()] + [captured()[kind] for kind in KINDS]

    def run(self, data: bytes) -> None:
        message = unwrap(Message.create("orders", data, EMBEDDED), NOW, Silence(), "SESS_SEND")
        encode_message(message, 7)


class LargeEmbeddedTarget(Target):
    """u8 pieces · u16 length · the wrapper of a message of type 8 · what comes in pieces."""

    name = "large embedded"
    words = WORDS

    def seeds(self) -> list[bytes]:
        wrappers = [captured()["large wrapper"]]
        made = large_embedded({HEADER: section(HEADER, listed(TRUE))}, 0).properties.get(LARGE_PROPERTY)
        assert isinstance(made, bytes)
        wrappers.append(made)
        bodies = [bytes(0x13A) + section(VALUE, text("x")), section(DATA, binary(b"data" * 40)) * 2]
        return [
            b"\x03" + len(wrapper).to_bytes(2, "big") + wrapper + body
            for wrapper in wrappers
            for body in bodies
        ]

    def run(self, data: bytes) -> None:
        if len(data) < 3:
            return
        end = 3 + int.from_bytes(data[1:3], "big")
        outer = large_embedded({}, 0)
        outer.put_property(LARGE_PROPERTY, data[3:end])
        pieces = pieces_of(outer, Silence())
        if pieces is None:
            return
        body = data[end:]
        step = max(1, len(body) // (data[0] + 1))
        written = b"".join(pieces.add(body[at : at + step]) for at in range(0, len(body), step))
        message, rest = pieces.finish(NOW)
        message.body = written + rest
        encode_message(message, 7)
