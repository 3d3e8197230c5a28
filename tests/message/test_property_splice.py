"""Properties put into and taken out of an encoded header give what decoding and encoding anew would give."""

from __future__ import annotations

import random
import time

import pytest
from librt.strings import BytesWriter

from atalanta.kernel.registry.duplicate_caches import OLDEST_MAX, DuplicateCache
from atalanta.message.codec import decode_message, encode_message
from atalanta.message.encoding.buffer import Reader
from atalanta.message.message import Message
from atalanta.message.properties import Byte, PropertyValue
from atalanta.message.property_splice import entry_prefix, write_entry

VALUES: list[PropertyValue] = [None, True, 7, 1.5, "text", b"bytes", Byte(1), "", b""]
NAMES = ["a", "_AMQ_ROUTE_TO", "_AMQ_BRIDGE_DUP", "_AMQ_ROUTING_TYPE", "_AMQ_GROUP_ID", "long name é"]


def message_with(properties: dict[str, PropertyValue]) -> Message:
    """As it comes from the wire: nothing decoded."""
    made = Message.create("address", b"body", 4, True, 1, 4)
    for name, value in properties.items():
        made.properties.put(name, value)
    return decode_message(Reader(encode_message(made, 5)))


@pytest.mark.parametrize("seed", range(200))
def test_taking_out_is_as_if_decoded(seed: int) -> None:
    draw = random.Random(seed)
    names = draw.sample(NAMES, draw.randint(0, len(NAMES)))
    properties = {name: draw.choice(VALUES) for name in names}
    spliced, decoded = message_with(properties), message_with(properties)
    for name in draw.sample(NAMES, 3):
        assert decoded.properties is not None
        assert spliced.remove_property(name) == decoded.properties.remove(name)
    assert encode_message(spliced, 9) == encode_message(decoded, 9)
    assert spliced.routing_type == decoded.routing_type
    assert spliced.group_id == decoded.group_id
    assert not any(name.startswith("_AMQ_G") for name in spliced.properties.names()) or spliced.special


@pytest.mark.parametrize("properties", [{}, {"a": 1}, {"a": 1, "_AMQ_ROUTING_TYPE": Byte(1)}])
def test_putting_in_is_as_if_decoded(properties: dict[str, PropertyValue]) -> None:
    entries = BytesWriter()
    write_entry(entries, entry_prefix("_AMQ_ROUTE_TO"), b"12345678")
    write_entry(entries, entry_prefix("_AMQ_BRIDGE_DUP"), b"")
    source = message_with(properties)
    spliced = source.copy_with(6, entries.getvalue(), 2)
    decoded = message_with(properties)
    decoded.put_property("_AMQ_ROUTE_TO", b"12345678")
    decoded.put_property("_AMQ_BRIDGE_DUP", b"")
    assert encode_message(spliced, 6) == encode_message(decoded, 6)
    assert spliced.special and spliced.id == 6
    assert spliced.property_value("_AMQ_ROUTE_TO") == b"12345678"
    assert source.has_property("_AMQ_ROUTE_TO") is False
    spliced.remove_property("_AMQ_ROUTE_TO")
    spliced.remove_property("_AMQ_BRIDGE_DUP")
    assert encode_message(spliced, 5) == encode_message(source, 5)
    assert not spliced.special


def test_a_repeated_name_goes_altogether() -> None:
    entries = BytesWriter()
    for value in (b"one", b"two"):
        write_entry(entries, entry_prefix("x"), value)
    twice = message_with({"a": 1}).copy_with(1, entries.getvalue(), 2)
    assert twice.remove_property("x") and not twice.has_property("x")
    assert twice.properties.names() == ["a"]


@pytest.mark.parametrize("seed", range(20))
def test_a_full_cache_keeps_the_newest(seed: int) -> None:
    draw = random.Random(seed)
    size = draw.choice((1, 5, OLDEST_MAX + 10, 1000))
    cache = DuplicateCache("c", size)
    expected: dict[bytes, int] = {}
    for step in range(5000):
        key = draw.randint(0, 3000).to_bytes(4, "big")
        if draw.random() < 0.05:
            cache.forget(key)
            expected.pop(key, None)
            continue
        cache.add(key, step)
        if key not in expected and len(expected) >= size:
            del expected[next(iter(expected))]
        expected[key] = step
    assert list(cache.ids.items()) == list(expected.items())


def test_a_name_repeated_very_often_goes_in_one_walk() -> None:
    """A client's message of a few megabytes must not keep the broker busy for seconds."""
    repeats = 100_000
    name = "_AMQ_ROUTE_TO"
    entry = BytesWriter()
    write_entry(entry, entry_prefix(name), b"")
    other = BytesWriter()
    write_entry(other, entry_prefix("other"), b"kept")
    entries = entry.getvalue() * repeats + other.getvalue() + entry.getvalue()
    often = message_with({"a": 1}).copy_with(1, entries, repeats + 2)
    began = time.process_time()
    assert often.remove_property(name)
    assert time.process_time() - began < 2
    assert not often.special
    assert encode_message(often, 5) == encode_message(message_with({"a": 1, "other": b"kept"}), 5)
