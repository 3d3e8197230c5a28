"""The position of a queue's log view (docs/internals/protocols/log-view.md), and its encoding."""

from __future__ import annotations

from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.message.quick_dataclass import dataclass


@dataclass(frozen=True)
class Position:
    """The limits of a queue. `first`: lowest live sequence or last + 1; `last`: highest visible sequence."""

    node_id: str
    incarnation: str
    first: int
    last: int
    messages: int
    bytes: int
    acked_through: int
    first_timestamp_ms: int
    last_timestamp_ms: int


NUMBERS = ("first", "last", "messages", "bytes", "acked_through", "first_timestamp_ms", "last_timestamp_ms")


def decode_position(reader: Reader) -> Position:
    """Decodes a position. DecodeError names the field."""
    node_id = reader.simple_string("node_id")
    incarnation = reader.simple_string("incarnation")
    return Position(node_id, incarnation, *[reader.int64(name) for name in NUMBERS])


def encode_position(writer: Writer, value: Position) -> None:
    writer.simple_string(value.node_id)
    writer.simple_string(value.incarnation)
    for name in NUMBERS:
        writer.int64(getattr(value, name))
