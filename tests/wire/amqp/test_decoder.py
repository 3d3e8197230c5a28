"""The types of AMQP 1.0, byte by byte from the specification (part 1, section 1.6)."""

from __future__ import annotations

import pytest

from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.properties import Byte, Char, Float, Int, Short
from atalanta.wire.amqp.decoder import DEPTH_MAX, Decoder
from atalanta.wire.amqp.values import (
    Array,
    Decimal,
    Described,
    Map,
    Symbol,
    Timestamp,
    UnsignedByte,
    UnsignedInt,
    UnsignedLong,
    UnsignedShort,
    Uuid,
)
from tests.wire.amqp.samples import listed, mapped_by, text

PRIMITIVES = {
    "40": None,
    "41": True,
    "42": False,
    "5601": True,
    "5600": False,
    "50ff": UnsignedByte(255),
    "60ffff": UnsignedShort(65535),
    "70ffffffff": UnsignedInt(4294967295),
    "52ff": UnsignedInt(255),
    "43": UnsignedInt(0),
    "80ffffffffffffffff": UnsignedLong(18446744073709551615),
    "53ff": UnsignedLong(255),
    "44": UnsignedLong(0),
    "51ff": Byte(-1),
    "61fffe": Short(-2),
    "71fffffffd": Int(-3),
    "54fd": Int(-3),
    "81fffffffffffffffc": -4,
    "55fc": -4,
    "723f000000": Float(0.5),
    "823fb999999999999a": 0.1,
    "7400000001": Decimal(b"\0\0\0\1"),
    "840000000000000001": Decimal(b"\0\0\0\0\0\0\0\1"),
    "9400000000000000000000000000000001": Decimal(bytes(15) + b"\1"),
    "73000000df": Char("ß"),
    "730001d11e": "𝄞",
    "8300000000000003e8": Timestamp(1000),
    "98000102030405060708090a0b0c0d0e0f": Uuid(bytes(range(16))),
    "a0020102": b"\1\2",
    "b0000000020102": b"\1\2",
    "a103c3a473": "äs",
    "b100000003c3a473": "äs",
    "a3026162": Symbol("ab"),
    "b3000000026162": Symbol("ab"),
    "45": [],
    "c00302434" + "0": [UnsignedInt(0), None],
    "d0000000060000000243" + "40": [UnsignedInt(0), None],
}


@pytest.mark.parametrize("encoded", PRIMITIVES)
def test_every_encoding_of_a_type(encoded: str) -> None:
    wanted = PRIMITIVES[encoded]
    decoder = Decoder(bytes.fromhex(encoded))
    found = decoder.value("field")
    assert found == wanted and type(found) is type(wanted)
    assert decoder.left() == 0


@pytest.mark.parametrize("encoded", [encoded for encoded in PRIMITIVES if len(encoded) > 2])
def test_what_ends_too_early_names_the_field(encoded: str) -> None:
    data = bytes.fromhex(encoded)
    for end in range(len(data)):
        with pytest.raises(DecodeError) as refused:
            Decoder(data[:end]).value("field")
        assert refused.value.field == "field"


def test_maps_keep_the_encoding_of_their_values() -> None:
    found = Decoder(mapped_by({text("a"): b"\x54\x05", b"\x40": text("x")})).value("field")
    assert isinstance(found, Map)
    assert [tuple(entry) for entry in found.entries] == [
        ("a", Int(5), b"\x54\x05"),
        (None, "x", text("x")),
    ]
    assert found.get("a") == 5 and found.get("b") is None
    assert isinstance(Decoder(bytes.fromhex("c10100")).value("field"), Map)


def test_arrays_share_a_constructor() -> None:
    found = Decoder(bytes.fromhex("e0 04 02 51 01 ff")).value("field")
    assert isinstance(found, Array) and found == [Byte(1), Byte(-1)]
    assert Decoder(bytes.fromhex("f0 00000007 00000001 a1 01 61")).value("field") == ["a"]
    described = Decoder(bytes.fromhex("e0 06 01 00 53 05 51 07")).value("field")
    assert described == [Described(UnsignedLong(5), Byte(7))]


def test_described_values() -> None:
    found = Decoder(bytes.fromhex("00 a3 03 75726c a1 01 78")).value("field")
    assert found == Described(Symbol("url"), "x")


@pytest.mark.parametrize(
    ("encoded", "why"),
    [
        ("99", "unknown constructor"),
        ("5602", "a boolean of 0x02"),
        ("a101ff", "no UTF-8"),
        ("a301ff", "not ASCII"),
        ("7300110000", "no character"),
        ("b0ffffffff00", "needs 4294967295 bytes"),
        ("d0ffffffff00000001", "needs 4294967295 bytes"),
        ("d000000005ffffffff40", "4294967295 values in 1 bytes"),
        ("c0030140" + "40", "1 bytes behind the last value"),
        ("c1020140", "a map of 1 keys and values"),
        ("f000000005ffffffff40", "an array of 4294967295 empty elements"),
        ("f000000005ffffffff51", "4294967295 values in 0 bytes"),
    ],
)
def test_malformed_values_are_refused(encoded: str, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        Decoder(bytes.fromhex(encoded)).value("field")


def test_nesting_is_limited() -> None:
    data = b"\x45"
    for _ in range(DEPTH_MAX):
        data = listed(data)
    assert Decoder(data).value("field") is not None
    with pytest.raises(DecodeError, match="nested more than"):
        Decoder(listed(data)).value("field")
    with pytest.raises(DecodeError, match="nested more than"):
        Decoder(b"\x00" * 10_000).value("field")
