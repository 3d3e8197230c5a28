"""Messages whose header is written at once are the same as those that are made of properties."""

from __future__ import annotations

import pytest

from atalanta.message.message import TEXT, Message
from atalanta.message.message_writer import MessageWriter, encoded_address, encoded_property
from atalanta.message.properties import Byte, Int, PropertyValue

USER_ID = bytes(range(16))
VALUES: dict[str, PropertyValue] = {"n": Int(7), "text": "é𝄞", "flag": True, "half": 0.5, "raw": b"\x01", "none": None}


def written(writer: MessageWriter, user_id: bytes | None, values: dict[str, PropertyValue]) -> Message:
    writer.begin(encoded_address("a"), user_id, TEXT, True, 5, 6, 7)
    writer.add(encoded_property("_AMQ_ROUTING_TYPE", Byte(1)))
    for name, value in values.items():
        writer.put(name, value)
    return writer.finish(b"body")


def composed(user_id: bytes | None, values: dict[str, PropertyValue]) -> Message:
    message = Message.create("a", b"body", TEXT, True, 6, 7)
    message.expiration = 5
    message.user_id = user_id
    message.properties.put("_AMQ_ROUTING_TYPE", Byte(1))
    for name, value in values.items():
        message.properties.put(name, value)
    return message


@pytest.mark.parametrize("user_id", [None, USER_ID])
def test_the_header_is_that_of_a_composed_message(user_id: bytes | None) -> None:
    writer = MessageWriter()
    several: tuple[dict[str, PropertyValue], ...] = (VALUES, {}, {"only": 1})
    for values in several:
        made, other = written(writer, user_id, values), composed(user_id, values)
        assert made.head == other.head and made.body == other.body
        fields = (made.address, made.kind, made.durable, made.expiration, made.timestamp, made.priority, made.user_id)
        assert fields == ("a", TEXT, True, 5, 6, 7, user_id)
        assert made.routing_type == 1 and made.properties == other.properties


def test_only_the_brokers_properties_are_looked_for() -> None:
    writer = MessageWriter()
    grouped = written(writer, USER_ID, {"n": 1, "_AMQ_GROUP_ID": "g"})
    assert grouped.special and grouped.group_id == "g"
    assert not written(writer, USER_ID, VALUES).special


def test_a_header_can_be_changed() -> None:
    made = written(MessageWriter(), USER_ID, VALUES)
    made.priority = 1
    made.put_property("more", "x")
    other = composed(USER_ID, {**VALUES, "more": "x"})
    other.priority = 1
    assert made.head == other.head
