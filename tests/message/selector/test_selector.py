"""Selectors: what they take, what is none, and that no text makes them slow."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

import pytest

from atalanta.message.message import Message
from atalanta.message.properties import Byte, Float, Int, PropertyValue, Short
from atalanta.message.selector.lexer import LENGTH_MAX
from atalanta.message.selector.like import LikePattern
from atalanta.message.selector.parser import any_of
from atalanta.message.selector.selector import Filter, FilterError, parse, parse_optional


def make(values: Mapping[str, PropertyValue]) -> Message:
    message = Message.create("orders", b"body", 3, True, 1_700_000_000_000, 4)
    message.user_id = bytes(range(16))
    for name, value in values.items():
        message.put_property(name, value)
    return message


VALUES: dict[str, PropertyValue] = {
    "name": "James",
    "rank": 123,
    "version": 2,
    "half": 0.5,
    "yes": True,
    "no": False,
    "foo": "_foo",
    "quote": "'In God We Trust'",
    "ending": "XD7xlJIQn_",
    "signs": "!#$&()*+,-./:;<=>?@[\\]^`{|}~",
    "blob": b"\x01\x02",
    "_AMQ_Distance": 0,
    "a.dotted": "d",
    "with-hyphen": "h",
    "price2": "12",
}


def matches(text: str) -> bool:
    return parse(text).matches(make(VALUES))


def truth(text: str) -> str:
    """T, F or U, told apart by the denial."""
    if matches(text):
        return "T"
    return "F" if matches(f"NOT ({text})") else "U"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = 'James'", "T"),
        ("name <> 'James'", "F"),
        ("name = 'james'", "F"),
        ("rank > 100", "T"),
        ("rank >= 124", "F"),
        ("rank = 123.0", "T"),
        ("rank = 0x7b AND rank = 0173", "T"),
        ("rank = 123L", "T"),
        ("half = .5 AND half = 5E-1 AND half < 1.", "T"),
        ("name = 'Foo' OR rank < 200", "T"),
        ("name = 'James' AND rank > 200", "F"),
        ("rank + 2 = 125 AND 125 = (rank + version)", "T"),
        ("rank - version * 2 = 119", "T"),
        ("(rank - version) * 2 = 242", "T"),
        ("rank / version = 61.5", "T"),
        ("rank % 10 = 3", "T"),
        ("-rank = -123 AND +rank = 123 AND - -rank = 123", "T"),
        ("rank / 0 > 1000000", "T"),
        ("name + '!' = 'James!'", "T"),
        ("rank BETWEEN 100 AND 150", "T"),
        ("rank NOT BETWEEN 100 AND 150", "F"),
        ("name IN ('Bob', 'James')", "T"),
        ("name NOT IN ('Bob', 'James')", "F"),
        ("name IN ('Bob')", "F"),
        ("rank IN ('123')", "U"),
        ("missing IS NULL", "T"),
        ("missing IS NOT NULL", "F"),
        ("name IS NULL", "F"),
        ("yes", "T"),
        ("no", "F"),
        ("name", "F"),
        ("yes = TRUE AND no <> TRUE", "T"),
        ("yes = 1", "F"),
        ("rank = '123'", "F"),
        ("rank < 'x' OR yes", "error"),
        ("missing = 'x'", "U"),
        ("'x' = missing", "U"),
        ("missing <> 'x'", "U"),
        ("missing > 1", "U"),
        ("missing LIKE 'x%'", "U"),
        ("missing NOT IN ('x')", "U"),
        ("missing + 1 = 1", "U"),
        ("missing = 1 AND no", "F"),
        ("missing = 1 AND yes", "U"),
        ("missing = 1 OR yes", "T"),
        ("missing = 1 OR no", "U"),
        ("NOT name = 'Bob'", "T"),
        ("NOT NOT name = 'James'", "T"),
        ("NOT (name = 'James' OR no)", "F"),
        ("NOT name IS NULL AND yes", "T"),
        ("yes = (rank > 5)", "T"),
        ("blob = blob", "F"),
        ("blob > 3", "F"),
        ("\"a.dotted\" = 'd'", "T"),
        ("hyphenated_props:with-hyphen = 'h'", "T-"),
        ("price2 > 5", "F"),
        ("convert_string_expressions:price2 > 5", "T-"),
        ("'true' = yes", "F"),
        ("convert_string_expressions:'True' = yes", "T-"),
        ("convert_string_expressions:no = 'anything'", "T-"),
        ("/* a comment */ yes -- and another\n", "T"),
        ("nAmE IS NULL and YES is null", "T"),
        ("yes or no and no", "T"),
    ],
)
def test_selector(text: str, expected: str) -> None:
    if expected == "error":
        with pytest.raises(FilterError):
            parse(text)
    elif expected == "T-":
        assert matches(text)
    else:
        assert truth(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AMQPriority = 4 AND JMSPriority > 3", True),
        ("AMQTimestamp = 1700000000000 AND JMSTimestamp IS NOT NULL", True),
        ("AMQDurable = 'DURABLE' AND JMSDeliveryMode = 'PERSISTENT'", True),
        ("JMSDeliveryMode = 'NON_PERSISTENT'", False),
        ("AMQExpiration = 0 AND AMQSize > 4 AND AMQAddress = 'orders'", True),
        ("AMQUserID = 'ID:00010203-0405-0607-0809-0a0b0c0d0e0f'", True),
        ("JMSMessageID LIKE 'ID:0001%'", True),
        ("AMQGroupID IS NULL AND JMSType IS NULL AND JMSCorrelationID IS NULL", True),
        ("AMQUnheard IS NULL", True),
    ],
)
def test_headers(text: str, expected: bool) -> None:
    assert matches(text) is expected


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("'%oo'", "_foo", True),
        ("'%ar'", "_foo", False),
        ("'!_%' ESCAPE '!'", "_foo", True),
        ("'!_%' ESCAPE '!'", "foo", False),
        ("'''In G_d We Trust'''", "'In God We Trust'", True),
        ("'''In Gd_ We Trust'''", "'In God We Trust'", False),
        ("'_D7xlJIQn$_' ESCAPE '$'", "XD7xlJIQn_", True),
        ("'_D7xlJIQn__' ESCAPE '_'", "XD7xlJIQn_", True),
        ("'%D7xlJIQn%'  ESCAPE '%'", "XD7xlJIQn_", True),
        ("'%D7xlJIQn%%'  ESCAPE '%'", "XD7xlJIQn_", False),
        ("'%'", "", True),
        ("'_%'", "", False),
        ("'a%a'", "a", False),
        ("'a%a'", "aa", True),
        ("'a%b_d%e'", "axxbcdb-de", True),
        ("'%b_d%b_d%'", "bxdbyd", True),
        ("'%b_d%b_d%'", "bxdyd", False),
        ("'%__%__%'", "abc", False),
        ("'%__%__%'", "abcd", True),
        ("'a.c'", "abc", False),
        ("'a\nb%'", "a\nbc\n", True),
    ],
)
def test_like(pattern: str, value: str, expected: bool) -> None:
    message = make({"p": value})
    assert parse(f"p LIKE {pattern}").matches(message) is expected
    assert parse(f"p NOT LIKE {pattern}").matches(message) is not expected


def test_all_kinds_of_numbers_compare() -> None:
    message = make({"b": Byte(5), "s": Short(5), "i": Int(5), "l": 5, "f": Float(5.0), "d": 5.0})
    for name in "bsilfd":
        assert parse(f"{name} = 5 AND {name} > 4.5 AND 5 = {name}").matches(message)
        assert not parse(f"{name} <> 5 OR {name} = '5' OR {name} = TRUE").matches(message)
    assert parse("b = s AND s = i AND i = l AND l = f AND f = d").matches(message)


def test_like_of_a_number_is_false() -> None:
    assert truth("rank LIKE '1%'") == "F"


def test_like_does_not_backtrack() -> None:
    pattern = "%a" * 3000 + "b"
    message = make({"p": "a" * 200_000})
    assert not parse(f"p LIKE '{pattern}'").matches(message)


CLUSTER = (
    "(_AMQ_Binding_Type <> 2 OR _AMQ_Binding_Type IS NULL) AND _AMQ_NotifType IN "
    "('SESSION_CREATED','BINDING_ADDED','BINDING_REMOVED','BINDING_UPDATED','CONSUMER_CREATED',"
    "'CONSUMER_CLOSED','PROPOSAL','PROPOSAL_RESPONSE','UNPROPOSAL') AND _AMQ_Distance < 1 AND "
    "(((_AMQ_Address LIKE 'jms%') OR (_AMQ_Address LIKE 'flights%')) AND "
    "((_AMQ_Address NOT LIKE '$.artemis.internal.sf.%') AND "
    "(_AMQ_Address NOT LIKE 'activemq.management%'))) AND "
    "(_AMQ_NotifType = 'SESSION_CREATED' OR (_AMQ_Address NOT LIKE 'activemq.notifications%'))"
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"_AMQ_NotifType": "BINDING_ADDED", "_AMQ_Distance": 0, "_AMQ_Address": "flights"}, True),
        ({"_AMQ_NotifType": "BINDING_ADDED", "_AMQ_Distance": 1, "_AMQ_Address": "flights"}, False),
        ({"_AMQ_NotifType": "BINDING_ADDED", "_AMQ_Distance": 0, "_AMQ_Address": "other"}, False),
        (
            {
                "_AMQ_NotifType": "BINDING_ADDED",
                "_AMQ_Distance": 0,
                "_AMQ_Address": "flights",
                "_AMQ_Binding_Type": 2,
            },
            False,
        ),
        ({"_AMQ_NotifType": "ADDRESS_ADDED", "_AMQ_Distance": 0, "_AMQ_Address": "jms"}, False),
        ({"_AMQ_NotifType": "CONSUMER_CREATED", "_AMQ_Address": "jms.x"}, False),
    ],
)
def test_notification_filter_of_a_cluster(values: dict[str, PropertyValue], expected: bool) -> None:
    assert parse(CLUSTER).matches(make(values)) is expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3 + 5", "condition"),
        ("TRUE AND 3", "condition"),
        ("=a 'test'", "unexpected '='"),
        ("a = b c", "unexpected 'c'"),
        ("a = 1 AMD b = 2", "unexpected 'AMD'"),
        ("a = ", "unexpected end"),
        ("a = 'x", "does not end"),
        ("a LIKE b", "expected a string"),
        ("a LIKE 'x' ESCAPE 'yz'", "one character"),
        ("a IN ()", "expected a string"),
        ("a IN (1)", "expected a string"),
        ("a + 1 IN ('x')", "only a property"),
        ("a NOT = 3", "LIKE, BETWEEN or IN"),
        ("a = NULL", "IS NULL"),
        ("a > 'x'", "no order"),
        ("a BETWEEN 'a' AND 'b'", "no order"),
        ("a # b", "unexpected character"),
        ("a != 1", "'<>'"),
        ("(a = 1", "expected ')'"),
        ("-(a = 1) > 2", "a condition is not a number"),
        ("-'x' > 2", "a string is not a number"),
        ("089 = a", "octal"),
        ("a = 0x" + "F" * 4000, "too many digits"),
        ("a = " + "1" * 5000, "too many digits"),
        ("XQUERY '//a'", "not supported"),
        ("", "unexpected end"),
        ("(" * 1000 + "a" + ")" * 1000, "deep"),
        ("- " * 1000 + "a = 1", "deep"),
        ("a = 1" + " + 1" * 500, "too many"),
        ("a OR " * 5000 + "a", "more than"),
        ("a = '" + "x" * LENGTH_MAX + "'", "more than"),
        ("a LIKE '%" + "_" * 300 + "%'", "more than"),
    ],
)
def test_what_is_no_selector(text: str, words: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text)
    assert words in caught.value.text
    assert 1 <= caught.value.column <= len(text) + 1


def test_error_names_the_column() -> None:
    with pytest.raises(FilterError) as caught:
        parse("rank > 5 AND name == 'x'")
    assert caught.value.column == 20


def test_long_address_lists_fit() -> None:
    excludes = " AND ".join(f"_AMQ_Address NOT LIKE 'address.number.{i}%'" for i in range(1000))
    message = make({"_AMQ_Address": "address.other"})
    assert parse(f"({excludes})").matches(message)


def test_no_text_takes_everything() -> None:
    assert parse_optional(None) is None
    assert parse_optional("  ") is None
    found = parse_optional("a = 1")
    assert isinstance(found, Filter) and found.text == "a = 1"


def test_like_agrees_with_a_regular_expression() -> None:
    draw = random.Random(7)
    for _ in range(3000):
        pattern = "".join(draw.choice("ab%_!") for _ in range(draw.randint(0, 8)))
        value = "".join(draw.choice("ab%_!") for _ in range(draw.randint(0, 9)))
        parts = {"%": ".*", "_": "."}
        expression = "".join(parts.get(character, character) for character in pattern)
        expected = re.fullmatch(expression, value) is not None
        assert LikePattern(pattern, None).matches(value) is expected, (pattern, value)


def test_what_one_of_several_selectors_takes() -> None:
    assert any_of(["a = 1", "b = 2 OR c = 3"]) == "(a = 1) OR (b = 2 OR c = 3)"
    joined = any_of(["a = 1", "convert_string_expressions:b > 2", "hyphenated_props:x-y = 3"])
    assert joined == "hyphenated_props:convert_string_expressions:(a = 1) OR (b > 2) OR (x-y = 3)"
    both = parse(joined)
    assert both.matches(make({"b": "3"})) and both.matches(make({"x-y": 3})) and not both.matches(make({"b": "2"}))
    assert any_of(["no_convert_string_expressions:a = 1"]) == "(a = 1)"
