"""Headers that are written and read by comparison are those that are written field by field."""

from __future__ import annotations

import pytest

from atalanta.message.codec import decode_header, encode_header
from atalanta.message.encoding.buffer import Reader
from atalanta.message.header_pattern import NO_NUMBER, HeaderPattern, header_pattern
from atalanta.message.message import TEXT, Message

PREFIX = "ID:host-1:1:1:"
HIGH = bytes(range(8))


def message(number: int, names: tuple[str, ...] = ("id",), **more: object) -> Message:
    """One as the broker has it: decoded from its encoding."""
    made = Message.create(str(more.get("address", "a")), b"body", TEXT, True, 6, 7)
    made.expiration = 5
    made.user_id = HIGH + number.to_bytes(8, "big")
    made.properties.put("before", str(more.get("before", "x")))
    for name in names:
        made.properties.put(name, f"{PREFIX}{number}")
    made.properties.put("after", str(more.get("after", "y")))
    return decode_header(Reader(encode_header(made)))


def pattern(number: int, names: tuple[str, ...] = ("id",)) -> HeaderPattern:
    found = header_pattern(message(number, names), names, PREFIX, number)
    assert found is not None
    return found


@pytest.mark.parametrize("names", [("id",), ("id", "again")])
def test_another_number(names: tuple[str, ...]) -> None:
    known = pattern(1234, names)
    for number in (1000, 5678, 9999):
        other = message(number, names)
        assert known.number_of(other) == number and known.fits(number)
        made = known.message(number, HIGH, number, 5, 6, b"b")
        assert made.head == other.head and made.body == b"b" and made.user_id == other.user_id
        assert (made.address, made.kind, made.durable, made.expiration) == ("a", TEXT, True, 5)
        assert (made.timestamp, made.priority, made.properties) == (6, 7, other.properties)


def test_times_differ() -> None:
    made = pattern(12).message(34, HIGH, 34, 77, 88, b"")
    again = decode_header(Reader(encode_header(made)))
    assert (again.expiration, again.timestamp, made.expiration, made.timestamp) == (77, 88, 77, 88)
    assert pattern(12).number_of(made) == 34


def test_a_header_that_differs() -> None:
    known = pattern(1234)
    for other in (
        message(123), message(12345), message(5678, before="z"), message(5678, after="z"), message(5678, address="b"),
        message(5678, ("di",)), message(5678, ()),
    ):  # fmt: skip
        assert known.number_of(other) == NO_NUMBER
    assert not known.fits(999) and not known.fits(10_000)
    changed = message(5678)
    changed.priority = 3
    assert known.number_of(changed) == NO_NUMBER
    without = message(5678)
    without.user_id = None
    assert known.number_of(without) == NO_NUMBER
    letters = Message.create("a", b"", TEXT, True, 6, 7)
    letters.user_id = HIGH * 2
    letters.properties.put("before", "x")
    letters.properties.put("id", PREFIX + "12x4")
    letters.properties.put("after", "y")
    assert known.number_of(decode_header(Reader(encode_header(letters)))) == NO_NUMBER


def test_numbers_that_disagree() -> None:
    known = pattern(1234, ("id", "again"))
    other = message(5678, ("id", "again"))
    other.properties.put("again", PREFIX + "5679")
    assert known.number_of(other) == NO_NUMBER


def test_no_pattern_without_a_user_id_or_a_text() -> None:
    assert header_pattern(message(1), ("id", "missing"), PREFIX, 1) is None
    assert header_pattern(message(1), (), PREFIX, 1) is None
    assert header_pattern(message(1), ("id",), PREFIX, 2) is None
    without = message(1)
    without.user_id = None
    assert header_pattern(without, ("id",), PREFIX, 1) is None
