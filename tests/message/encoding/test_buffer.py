"""CORE's primitives: their bytes, and what happens when there are too few."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer, utf16_units

TEXT = st.text(st.characters(), max_size=40)


def written(write: Callable[[Writer], None]) -> bytes:
    writer = Writer()
    write(writer)
    assert len(writer) == len(writer.getvalue())
    return writer.getvalue()


def test_numbers_are_big_endian() -> None:
    def write(writer: Writer) -> None:
        writer.int8(-2)
        writer.uint8(254)
        writer.int16(-3)
        writer.int32(-4)
        writer.int64(-5)
        writer.float32(1.5)
        writer.float64(-2.5)

    data = written(write)
    assert data.hex() == "fefefffdfffffffcfffffffffffffffb3fc00000c004000000000000"
    reader = Reader(data)
    assert (reader.int8(), reader.uint8(), reader.int16()) == (-2, 254, -3)
    assert (reader.int32(), reader.int64()) == (-4, -5)
    assert (reader.float32(), reader.float64(), reader.left()) == (1.5, -2.5, 0)


def test_true_is_255_and_everything_but_0_is_true() -> None:
    assert written(lambda writer: writer.boolean(True)) == b"\xff"
    assert written(lambda writer: writer.boolean(False)) == b"\x00"
    reader = Reader(b"\x00\x01\xff")
    assert [reader.boolean(), reader.boolean(), reader.boolean()] == [False, True, True]


def test_nullables_of_strings_and_of_others_have_different_markers() -> None:
    assert written(lambda writer: writer.nullable_simple_string("a")).hex() == "01000000026100"
    assert written(lambda writer: writer.nullable_string("a")).hex() == "01000000010061"
    assert written(lambda writer: writer.nullable_boolean(False)).hex() == "ff00"
    assert written(lambda writer: writer.nullable_int32(1)).hex() == "ff00000001"
    assert written(lambda writer: writer.nullable_int64(1)).hex() == "ff0000000000000001"
    for write in (
        lambda writer: writer.nullable_simple_string(None),
        lambda writer: writer.nullable_string(None),
        lambda writer: writer.nullable_boolean(None),
        lambda writer: writer.nullable_int32(None),
        lambda writer: writer.nullable_int64(None),
    ):
        assert written(write) == b"\x00"


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("", "00000000"),
        ("abcdefgh", "0000000800610062006300640065006600670068"),
        ("abcdefghi", "000000090009616263646566676869"),
        ("ä\u20ac\U0001f600abcde", "000000090010c3a4e282aceda0bdedb8806162636465"),
        ("nul\x00 inside", "0000000b000b6e756c0020696e73696465"),
    ],
)
def test_the_forms_of_a_string(text: str, encoded: str) -> None:
    data = written(lambda writer: writer.string(text))
    assert data.hex() == encoded
    assert Reader(data).string() == text


def test_javas_two_byte_nul_is_read() -> None:
    data = bytes.fromhex("0000000b000c") + b"nul\xc0\x80 inside"
    assert Reader(data).string() == "nul\x00 inside"


def test_long_strings_are_simple_strings() -> None:
    text = "x" * 4095
    data = written(lambda writer: writer.string(text))
    assert data[:8].hex() == "00000fff00001ffe"
    assert Reader(data).string() == text
    shorter = written(lambda writer: writer.string(text[1:]))
    assert shorter[:6].hex() == "00000ffe0ffe"


@given(TEXT, st.integers(1, 400))
def test_every_text_comes_back(text: str, times: int) -> None:
    def write(writer: Writer) -> None:
        writer.simple_string(text)
        writer.string(text)
        writer.nullable_string(text * times)

    data = written(write)
    reader = Reader(data)
    assert reader.simple_string() == text
    assert reader.string() == text
    assert reader.nullable_string() == text * times
    assert reader.left() == 0


@given(st.binary(max_size=40))
def test_every_even_number_of_bytes_is_a_simple_string(units: bytes) -> None:
    units = units[: len(units) & ~1]
    data = len(units).to_bytes(4, "big") + units
    text = Reader(data).simple_string()
    assert written(lambda writer: writer.simple_string(text)) == data
    assert utf16_units(text) * 2 == len(units)


READS: list[tuple[str, Callable[[Reader], object]]] = [
    ("int8", lambda reader: reader.int8("it")),
    ("uint8", lambda reader: reader.uint8("it")),
    ("int16", lambda reader: reader.int16("it")),
    ("int32", lambda reader: reader.int32("it")),
    ("int64", lambda reader: reader.int64("it")),
    ("float32", lambda reader: reader.float32("it")),
    ("float64", lambda reader: reader.float64("it")),
    ("boolean", lambda reader: reader.boolean("it")),
    ("simple_string", lambda reader: reader.simple_string("it")),
    ("nullable_simple_string", lambda reader: reader.nullable_simple_string("it")),
    ("string", lambda reader: reader.string("it")),
    ("nullable_string", lambda reader: reader.nullable_string("it")),
    ("nullable_boolean", lambda reader: reader.nullable_boolean("it")),
    ("nullable_int32", lambda reader: reader.nullable_int32("it")),
    ("nullable_int64", lambda reader: reader.nullable_int64("it")),
    ("blob", lambda reader: reader.blob("it")),
    ("take", lambda reader: reader.take(3, "it")),
]


@pytest.mark.parametrize(("name", "read"), READS, ids=[name for name, _ in READS])
def test_nothing_left_is_an_error_with_the_fields_name(
    name: str, read: Callable[[Reader], object]
) -> None:
    with pytest.raises(DecodeError, match="^it at byte 2: ") as caught:
        read(Reader(b"\x01\x01\x01\x01", 2, 2))
    assert (caught.value.field, caught.value.offset) == ("it", 2)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("7ffffffe", "needs 2147483646 bytes, 0 are left"),
        ("ffffffff00", "odd length -1"),
        ("fffffffe00", "negative length -2"),
        ("00000003616263", "odd length 3"),
    ],
)
def test_impossible_simple_strings(data: str, text: str) -> None:
    with pytest.raises(DecodeError, match=text):
        Reader(bytes.fromhex(data)).simple_string("name")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("ffffffff", "negative length -1"),
        ("0000000800", "needs 16 bytes, 1 are left"),
        ("00000009ffff61", "needs 65535 bytes, 1 are left"),
        ("000000090002c328", "not Java's UTF-8"),
        ("0000000900026162", "9 UTF-16 units announced, 2 found"),
        ("00000fff0000000461006200", "4095 UTF-16 units announced, 2 found"),
    ],
)
def test_impossible_strings(data: str, text: str) -> None:
    with pytest.raises(DecodeError, match=text):
        Reader(bytes.fromhex(data)).string("name")


def test_a_count_that_cannot_be_true_is_refused() -> None:
    with pytest.raises(DecodeError, match="items at byte 0: 3 entries in 8 bytes"):
        Reader(bytes.fromhex("00000003") + bytes(8)).count("items", 4)
    with pytest.raises(DecodeError, match="-1 entries"):
        Reader(bytes.fromhex("ffffffff") + bytes(8)).count("items", 4)
    assert Reader(bytes.fromhex("00000002") + bytes(8)).count("items", 4) == 2


def test_a_reader_ends_where_it_was_told() -> None:
    reader = Reader(b"abcdef", 1, 4)
    assert reader.take(2) == b"bc"
    assert reader.left() == 1
    assert reader.rest() == b"d"
    with pytest.raises(DecodeError):
        reader.take(1)
    with pytest.raises(ValueError, match="range"):
        Reader(b"abc", 2, 4)


@pytest.mark.parametrize(
    "write",
    [
        lambda writer: writer.int8(128),
        lambda writer: writer.uint8(256),
        lambda writer: writer.uint8(-1),
        lambda writer: writer.int16(1 << 15),
        lambda writer: writer.int32(1 << 31),
        lambda writer: writer.int64(1 << 63),
    ],
)
def test_numbers_out_of_range_are_not_written(write: Callable[[Writer], None]) -> None:
    with pytest.raises((OverflowError, ValueError, TypeError)):
        write(Writer())


def test_a_writer_starts_again() -> None:
    writer = Writer()
    writer.int64(1)
    writer.clear()
    writer.raw(b"x")
    assert writer.getvalue() == b"x"
