"""Bodies of messages as text."""

from __future__ import annotations

import json

import pytest

from atalanta.console.view.body_text import BodyText, body_text, hex_rows


def test_json_keeps_numbers_and_the_order_of_keys() -> None:
    text = '{"b": 1.10, "a": [1, {}, [], null, true], "b": 12345678901234567890123, "ä": "\\u0000"}'
    shown = body_text(text.encode(), text, "")
    assert shown.form == "json"
    assert '"b": 1.10' in shown.text and "12345678901234567890123" in shown.text and shown.text.count('"b"') == 2
    assert json.loads(shown.text) == json.loads(text)


@pytest.mark.parametrize(
    ("raw", "wanted", "form", "note"),
    [
        (b"plain", "", "text", ""),
        (b"plain", "json", "text", "not JSON"),
        (b"[" * 3_000, "json", "text", "not JSON"),
        (b"[" * 200 + b"]" * 200, "json", "text", "not JSON"),
        (b"<a>b</a>", "", "xml", ""),
        (b"plain", "xml", "text", "not XML"),
        (b"\xff\x00", "", "hex", ""),
        (b"\xff\x00", "text", "hex", "not text: the bytes are not UTF-8"),
        (b"plain", "hex", "hex", ""),
        (b"", "", "text", ""),
    ],
)
def test_a_form_that_does_not_fit_is_replaced(raw: bytes, wanted: str, form: str, note: str) -> None:
    found = body_text(raw, None, wanted)
    assert (found.form, found.note) == (form, note)


def test_a_text_message_is_its_text_whatever_its_bytes() -> None:
    assert body_text(b"\xff", "täxt", "text") == BodyText("text", "täxt")


def test_hex_rows() -> None:
    assert hex_rows(bytes(range(60, 78))).splitlines() == [
        "0000003c  ".replace("3c", "00") + "3c 3d 3e 3f 40 41 42 43 44 45 46 47 48 49 4a 4b  <=>?@ABCDEFGHIJK",
        "00000010  4c 4d                                            LM",
    ]
