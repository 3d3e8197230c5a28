"""Primitive values: every type, limits, and damage."""

from __future__ import annotations

import pytest

from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.properties import Byte, Char, Float, Int, Short
from atalanta.wire.openwire.encoding.primitives import PrimitiveReader, decode_map, encode_map
from atalanta.wire.openwire.encoding.structure import EncodeError

VALUES: dict[str, object] = {
    "a": None, "b": False, "c": Byte(-128), "d": Char("\uffff"), "e": Short(-1), "f": Int(1 << 30), "g": 1 << 40,
    "h": 0.1, "i": Float(0.5), "j": "é𝄞\0\ud800", "k": b"\0\1", "l": {"x": [1, {"y": None}]}, "": "x" * 8190,
    "é": "x" * 8191, "n" * 40_000: "é" * 9000,
}  # fmt: skip


def test_values_survive_the_way_there_and_back() -> None:
    found = decode_map(encode_map("m", VALUES), "m")
    assert found == VALUES
    assert [type(each) for each in found.values()] == [type(each) for each in VALUES.values()]


def test_a_text_of_8191_units_is_a_big_string() -> None:
    assert PrimitiveReader(b"\x09\x00\x01a").value("v") == "a"
    assert encode_map("m", {"": "x" * 8190})[6] == 9
    assert encode_map("m", {"": "x" * 8191})[6] == 13


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("0e", "unknown primitive type 14"),
        ("09 ffff", "needs 65535 bytes"),
        ("0d 7fffffff", "needs 2147483647 bytes"),
        ("0d fffffffe", "negative length -2"),
        ("0a 7fffffff", "needs 2147483647 bytes"),
        ("0b 7fffffff", "2147483647 entries in 0 bytes"),
        ("0c 7fffffff", "2147483647 entries in 0 bytes"),
        ("09 0002 c328", "not Java's UTF-8"),
        ("0c 00000001" * 40 + "00", "nested more than 32 deep"),
    ],
)
def test_damage_is_named(data: str, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        PrimitiveReader(bytes.fromhex(data)).value("v")


def test_every_cut_is_a_decode_error() -> None:
    data = encode_map("m", {name: value for name, value in VALUES.items() if len(name) < 2})
    for end in [*range(200), *range(200, len(data), 997)]:
        with pytest.raises(DecodeError):
            decode_map(data[:end], "m")


def test_many_values_have_a_limit() -> None:
    with pytest.raises(DecodeError, match="too many values"):
        decode_map(encode_map("m", {"a": [None] * 10}), "m", values_max=10)


@pytest.mark.parametrize("value", [1 << 63, object(), {"x" * 70_000: 1}])
def test_what_is_no_primitive_value(value: object) -> None:
    with pytest.raises(EncodeError, match="m"):
        encode_map("m", {"m": value})
