"""Typed properties: every Java type there and back, refusals, searches without decoding."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.message.properties import (
    BOOLEAN,
    BYTE,
    BYTES,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    NULL,
    SCAN_END,
    SHORT,
    STRING,
    Byte,
    Char,
    Float,
    Int,
    PropertyValue,
    Short,
    TypedProperties,
    find_value,
    scan_properties,
)
from tests.message.property_strategies import PROPERTIES


def encoded(properties: TypedProperties) -> bytes:
    writer = Writer()
    properties.encode(writer)
    return writer.getvalue()


def decoded(data: bytes) -> TypedProperties:
    reader = Reader(data)
    properties = TypedProperties.decode(reader)
    assert reader.left() == 0
    return properties


CASES: list[tuple[PropertyValue, int, PropertyValue, str]] = [
    (None, NULL, None, "00"),
    (True, BOOLEAN, True, "0201"),
    (Byte(-1), BYTE, -1, "03ff"),
    (b"ab", BYTES, b"ab", "04000000026162"),
    (Short(-2), SHORT, -2, "05fffe"),
    (Int(7), INT, 7, "0600000007"),
    (7, LONG, 7, "070000000000000007"),
    (Float(1.5), FLOAT, 1.5, "083fc00000"),
    (1.5, DOUBLE, 1.5, "093ff8000000000000"),
    ("ab", STRING, "ab", "0a0000000461006200"),
    (Char("a"), CHAR, "a", "0b0061"),
]


@pytest.mark.parametrize(("value", "code", "plain", "data"), CASES)
def test_every_java_type(value: PropertyValue, code: int, plain: PropertyValue, data: str) -> None:
    properties = TypedProperties()
    properties.put("n", value)
    assert properties.entries["n"][0] == code
    assert properties.get("n") == plain
    assert type(properties.get("n")) is type(plain)
    assert encoded(properties).hex() == "0100000001000000026e00" + data
    again = decoded(encoded(properties))
    assert again == properties
    assert again.entries["n"][0] == code


def test_no_properties_are_one_byte() -> None:
    assert encoded(TypedProperties()) == b"\x00"
    assert len(decoded(b"\x00")) == 0
    assert len(decoded(bytes.fromhex("0100000000"))) == 0


def test_order_names_and_removal() -> None:
    properties = TypedProperties()
    for name in ("b", "a", "c"):
        properties.put(name, name)
    assert properties.names() == ["b", "a", "c"]
    assert properties.remove("a")
    assert not properties.remove("a")
    assert properties.items() == [("b", "b"), ("c", "c")]
    assert "a" not in properties
    assert properties.get("a") is None
    assert "a" not in properties.entries
    assert len(properties) == 2


def test_a_copy_is_on_its_own() -> None:
    properties = TypedProperties()
    properties.put("a", 1)
    twin = properties.copy()
    twin.put("a", 2)
    assert (properties.get("a"), twin.get("a")) == (1, 2)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (BYTE, 128),
        (SHORT, 1 << 15),
        (INT, 1 << 31),
        (LONG, 1 << 63),
        (FLOAT, 3.5e38),
        (CHAR, "ab"),
        (CHAR, "\U0001f600"),
        (STRING, b"bytes"),
        (BYTES, "text"),
        (BOOLEAN, 1),
        (INT, True),
        (NULL, 0),
        (1, 1),
        (12, 1),
        (-1, 1),
    ],
)
def test_what_does_not_fit_its_type_is_refused_by_name(code: int, value: PropertyValue) -> None:
    properties = TypedProperties()
    with pytest.raises(ValueError, match="property speed: "):
        properties.put_typed("speed", code, value)
    assert len(properties) == 0


def test_a_value_of_no_java_type_is_refused() -> None:
    with pytest.raises(TypeError):
        TypedProperties().put("n", [])  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [math.inf, -math.inf, 3.4028234e38])
def test_the_extremes_of_a_float(value: float) -> None:
    properties = TypedProperties()
    properties.put("n", Float(value))
    assert decoded(encoded(properties)).get("n") == pytest.approx(value)


def test_lone_surrogates_survive() -> None:
    data = bytes.fromhex("010000000100000002" + "00d8" + "0b" + "dc00")
    properties = decoded(data)
    assert properties.items() == [("\ud800", "\udc00")]
    assert encoded(properties) == data


def made(values: dict[str, PropertyValue]) -> TypedProperties:
    properties = TypedProperties()
    for name, value in values.items():
        properties.put(name, value)
    return properties


@given(PROPERTIES)
def test_any_properties_come_back_byte_for_byte(values: dict[str, PropertyValue]) -> None:
    properties = made(values)
    data = encoded(properties)
    again = decoded(data)
    assert again == properties
    assert again.names() == list(values)
    assert encoded(again) == data
    assert scan_properties(b"xx" + data + b"yy", 2, len(data) + 4) & SCAN_END == 2 + len(data)


@given(PROPERTIES, st.text(max_size=3))
def test_finding_without_decoding(values: dict[str, PropertyValue], other: str) -> None:
    properties = made(values)
    data = encoded(properties)
    for name in [*values, other]:
        position = find_value(b"head" + data, 4, name.encode("utf-16-le", "surrogatepass"))
        if name in values:
            assert (b"head" + data)[position] == properties.entries[name][0]
        else:
            assert position == -1


def test_a_name_within_a_value_is_not_found() -> None:
    properties = made({"a": "_AMQ_DUPL_ID", "x_AMQ_DUPL_ID": 1})
    data = encoded(properties)
    assert "_AMQ_DUPL_ID".encode("utf-16-le") in data
    assert find_value(data, 0, "_AMQ_DUPL_ID".encode("utf-16-le")) == -1


@given(PROPERTIES, st.data())
def test_damage_is_noticed_by_both_readers_alike(
    values: dict[str, PropertyValue], source: st.DataObject
) -> None:
    data = bytearray(encoded(made(values)))
    position = source.draw(st.integers(0, len(data) - 1))
    data[position] = source.draw(st.integers(0, 255))
    size = source.draw(st.integers(0, len(data)))
    broken = bytes(data[:size])
    try:
        end = scan_properties(broken, 0, len(broken)) & SCAN_END
    except DecodeError:
        with pytest.raises(DecodeError):
            TypedProperties.decode(Reader(broken))
    else:
        reader = Reader(broken)
        TypedProperties.decode(reader)
        assert reader.position == end


def test_a_count_beyond_the_bytes_is_refused_at_once() -> None:
    data = bytes.fromhex("017fffffff") + bytes(100)
    with pytest.raises(DecodeError, match="properties.count"):
        TypedProperties.decode(Reader(data))
    with pytest.raises(DecodeError, match="properties.count"):
        scan_properties(data, 0, len(data))


def test_an_error_names_the_property() -> None:
    data = bytes.fromhex("0100000001000000026e0007000000")
    with pytest.raises(DecodeError, match="^n at byte 12: needs 8 bytes, 3 are left"):
        TypedProperties.decode(Reader(data))
