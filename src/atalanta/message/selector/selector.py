"""Selectors, which choose messages for a queue or a consumer (JMS syntax, Artemis' identifiers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.selector.lexer import LENGTH_MAX, FilterError
from atalanta.message.selector.nodes import TRUE, Condition
from atalanta.message.selector.parser import Parser

if TYPE_CHECKING:
    from atalanta.message.message import Message

DECODE_FROM: Final = 3  # number of property reads above which a message is decoded at once

__all__ = ["Filter", "FilterError", "parse", "parse_optional"]


class Filter:
    """A parsed selector; `text` is its source."""

    def __init__(self, text: str, condition: Condition, properties: int) -> None:
        self.text = text
        self.condition = condition
        # A search for few properties in the encoded message is cheaper than decoding all of them.
        self.decodes: bool = properties > DECODE_FROM

    def matches(self, message: Message) -> bool:
        """Returns True if the selector is TRUE for the message (UNKNOWN does not match)."""
        if self.decodes:
            _ = message.properties
        return self.condition.test(message) == TRUE


def parse(text: str) -> Filter:
    """Parses a selector. Raises FilterError (text, column) if it is invalid, too long or nested too deeply."""
    if len(text) > LENGTH_MAX:
        raise FilterError(f"a selector has more than {LENGTH_MAX} characters", LENGTH_MAX + 1)
    parser = Parser(text)
    return Filter(text, parser.condition(), parser.properties)


def parse_optional(text: str | None) -> Filter | None:
    """Parses a selector. Returns None, which selects every message, for no text or only blanks."""
    if text is None or not text.strip():
        return None
    return parse(text)
