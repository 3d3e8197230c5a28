"""Selectors: which messages a queue or a consumer wants (JMS syntax, Artemis' identifiers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.selector.lexer import LENGTH_MAX, FilterError
from atalanta.message.selector.nodes import TRUE, Condition
from atalanta.message.selector.parser import Parser

if TYPE_CHECKING:
    from atalanta.message.message import Message

DECODE_FROM: Final = 3  # property reads above which a message is decoded at once

__all__ = ["Filter", "FilterError", "parse", "parse_optional"]


class Filter:
    """A parsed selector; `text` is what was parsed."""

    def __init__(self, text: str, condition: Condition, properties: int) -> None:
        self.text = text
        self.condition = condition
        # Few properties are cheaper to find in the encoded message than to decode them all.
        self.decodes: bool = properties > DECODE_FROM

    def matches(self, message: Message) -> bool:
        """Whether the selector is true of the message (unknown is not true)."""
        if self.decodes:
            _ = message.properties
        return self.condition.test(message) == TRUE


def parse(text: str) -> Filter:
    """FilterError (text, column) if `text` is no selector, longer than LENGTH_MAX or nested too
    deeply.
    """
    if len(text) > LENGTH_MAX:
        raise FilterError(f"a selector has more than {LENGTH_MAX} characters", LENGTH_MAX + 1)
    parser = Parser(text)
    return Filter(text, parser.condition(), parser.properties)


def parse_optional(text: str | None) -> Filter | None:
    """As `parse`; no text, or only blanks, takes every message and gives None."""
    if text is None or not text.strip():
        return None
    return parse(text)
