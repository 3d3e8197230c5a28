"""Messages as lines of JSON: what is no base64 is refused by its place."""

from __future__ import annotations

import pytest

from atalanta.cli.messages.browse import row_of
from atalanta.cli.messages.json_lines import decoded, json_of, message_of
from atalanta.cli.messages.typed_properties import parse_properties
from atalanta.cli.output.outcome import Refused
from atalanta.client import ReceivedMessage
from atalanta.message.message import BYTES, COMPRESSED, MAP, TEXT, Message


@pytest.mark.parametrize("text", ["?", "\u00e9", "AAE"])
def test_what_is_no_base64_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Refused, match="line 3: not base64"):
        decoded(text, "line 3")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"priority": 12}', "priority is not between 0 and 9"),
        ('{"expiration": -1}', "expiration is not between"),
        ('{"timestamp": 99999999999999999999}', "timestamp is not between"),
        ('{"properties": {"a": 99999999999999999999}}', "property a: 99999999999999999999"),
        ('{"properties": {"a": 500}, "property_types": {"a": "byte"}}', "property a: 500"),
        ('{"properties": {"a": 5}, "property_types": {"a": "word"}}', "property a: type word is none of"),
        ('{"map": {"a": -99999999999999999999}}', "property a: -99999999999999999999"),
    ],
)
def test_numbers_that_cannot_travel_are_refused_with_their_place(line: str, why: str) -> None:
    with pytest.raises(Refused, match=f"orders.json:7: {why}"):
        message_of(line, "orders.json:7")


@pytest.mark.parametrize(
    "given", ["a:byte=300", "a:short=-99999", "a:int=99999999999", "a:long=9223372036854775808"]
)
def test_numbers_beyond_their_type_are_refused(given: str) -> None:
    with pytest.raises(Refused, match="property a"):
        parse_properties([given])


@pytest.mark.parametrize("kind", [BYTES, TEXT, MAP])
def test_a_body_that_is_only_said_to_be_compressed_stops_nothing(kind: int) -> None:
    """Any sender can set the property: one such message ended the export of a folder."""
    message = Message(7, b"plain bytes")
    message.address = "a"
    message.kind = kind
    message.properties.put(COMPRESSED, True)
    received = ReceivedMessage(message, "a")
    assert json_of(received)["body_base64"] == "cGxhaW4gYnl0ZXM="
    assert "11" in row_of(received)
