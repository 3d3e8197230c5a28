"""Java properties files and placeholders."""

from __future__ import annotations

import tracemalloc

import pytest

from atalanta.config.xml.properties import PropertiesError, parse_properties, substitute


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2\nc: 3\nd 4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# c\n! c\n\n   a=1", {"a": "1"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a\\ b\\=c = \\ d ", {"a b=c": " d "}),
        ("a = one, \\\n    two, \\\n  three", {"a": "one, two, three"}),
        ("a = x\\\\\nb = y", {"a": "x\\", "b": "y"}),
        ("a = \\u00e4\\t\\n\\q", {"a": "ä\t\nq"}),
        ("a = \\ud83d\\ude00", {"a": "\U0001f600"}),
        ("a\r\nb=\r\nc", {"a": "", "b": "", "c": ""}),
        ("a = x # no comment", {"a": "x # no comment"}),
        ("a = end\\", {"a": "end"}),
        ("", {}),
    ],
)
def test_java_properties(text: str, expected: dict[str, str]) -> None:
    assert {entry.key: entry.value for entry in parse_properties(text)} == expected


def test_lines_are_those_of_the_key() -> None:
    found = parse_properties("\na = 1 \\\n 2\nb = 3")
    assert [(entry.key, entry.line) for entry in found] == [("a", 2), ("b", 4)]


def test_malformed_escape() -> None:
    with pytest.raises(PropertiesError) as caught:
        parse_properties("a=1\nb=\\u12g4")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${a}", "1"),
        ("x${a}y${a}z", "x1y1z"),
        ("${none:7}", "7"),
        ("${none:}", ""),
        ("${a:7}", "1"),
        ("${none:http://h:1}", "http://h:1"),
        ("${none:${a}}", "1"),
        ("${b}", "1"),
        ("${ a }", "1"),
        ("$ {a} ${a", "$ {a} ${a"),
    ],
)
def test_substitution(text: str, expected: str) -> None:
    assert substitute(text, {"a": "1", "b": "${a}"}) == expected


def test_substitution_without_value_or_end() -> None:
    with pytest.raises(KeyError):
        substitute("${none}", {})
    with pytest.raises(ValueError, match="without end"):
        substitute("${a}", {"a": "x${a}"})


def test_a_small_text_that_stands_for_a_large_one_costs_nothing() -> None:
    """Found by fuzzing: many places, each of which would become many more."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="without end"):
            substitute("${b}" * 5_000, {"b": "${b}" * 700})
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
