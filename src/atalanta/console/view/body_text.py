"""Bodies of messages as text for a page: never as HTML, whatever they say they are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

TEXT: Final = "text"
JSON: Final = "json"
XML: Final = "xml"
HEX: Final = "hex"
FORMS: Final = (TEXT, JSON, XML, HEX)
ROW_BYTES: Final = 16
JSON_DEPTH_MAX: Final = 100


@dataclass(frozen=True)
class BodyText:
    """A body in one form. `form` is the one that was used, `note` why it is not the one that was asked for."""

    form: str
    text: str
    note: str = ""


def body_text(raw: bytes, text: str | None, wanted: str) -> BodyText:
    """Returns a body in the form that is wanted, or in one that fits. `text` is that of a text message."""
    if wanted == HEX:
        return BodyText(HEX, hex_rows(raw))
    if text is None:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            note = f"not {wanted}: the bytes are not UTF-8" if wanted in FORMS else ""
            return BodyText(HEX, hex_rows(raw), note)
    if wanted in (JSON, ""):
        indented = indented_json(text)
        if indented is not None:
            return BodyText(JSON, indented)
        if wanted == JSON:
            return BodyText(TEXT, text, "not JSON")
    if wanted == XML or (wanted == "" and looks_like_xml(text)):
        if looks_like_xml(text):
            return BodyText(XML, text)
        return BodyText(TEXT, text, "not XML")
    return BodyText(TEXT, text)


def indented_json(text: str) -> str | None:
    """Returns a JSON object or list on several lines, None for other text. Repeated keys stay."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text, object_pairs_hook=_Pairs, parse_float=_Literal, parse_int=_Literal)
        return "".join(_lines(value, 0))
    except (ValueError, RecursionError):
        return None


def looks_like_xml(text: str) -> bool:
    """Returns whether the text begins and ends like XML. It is not parsed."""
    stripped = text.strip()
    return stripped.startswith("<") and stripped.endswith(">")


def hex_rows(raw: bytes) -> str:
    """Returns rows of an offset, 16 bytes, and their ASCII characters."""
    rows = []
    for start in range(0, len(raw), ROW_BYTES):
        part = raw[start : start + ROW_BYTES]
        shown = "".join(chr(each) if 32 <= each < 127 else "." for each in part)
        rows.append(f"{start:08x}  {part.hex(' '):<{3 * ROW_BYTES - 1}}  {shown}")
    return "\n".join(rows)


class _Pairs(list[tuple[str, object]]):
    """The entries of an object, as they stand in the text."""


class _Literal(str):
    """A number, as it stands in the text: not rounded."""


def _lines(value: object, depth: int) -> list[str]:
    if depth > JSON_DEPTH_MAX:
        raise RecursionError
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, _Pairs):
        if not value:
            return ["{}"]
        parts = [[inner, json.dumps(key, ensure_ascii=False), ": ", *_lines(each, depth + 1)] for key, each in value]
        return ["{\n", *_joined(parts), f"\n{outer}}}"]
    if isinstance(value, list):
        if not value:
            return ["[]"]
        return ["[\n", *_joined([[inner, *_lines(each, depth + 1)] for each in value]), f"\n{outer}]"]
    if isinstance(value, _Literal):
        return [value]
    return [json.dumps(value, ensure_ascii=False)]


def _joined(parts: list[list[str]]) -> list[str]:
    found: list[str] = []
    for number, part in enumerate(parts):
        found += [",\n"] if number else []
        found += part
    return found
