"""Selectors, which choose messages for a queue or a consumer (JMS syntax, Artemis' identifiers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.selector.lexer import LENGTH_MAX, FilterError
from atalanta.message.selector.nodes import TRUE, Condition
from atalanta.message.selector.parser import Parser

if TYPE_CHECKING:
    from atalanta.message.message import Message

DECODE_FROM: Final = 3  # number of property reads above which a message is decoded at once
XPATH_COST: Final = 200

__all__ = ["Filter", "FilterError", "parse", "parse_optional"]


class Filter:
    """A parsed selector; `text` is its source.

    `cost` is that of one message, in multiples of a selector of properties: how many messages a search examines at once
    is divided by it.
    """

    def __init__(self, text: str, condition: Condition, properties: int, xpaths: int) -> None:
        self.text = text
        self.condition = condition
        # A search for few properties in the encoded message is cheaper than decoding all of them.
        self.decodes: bool = properties > DECODE_FROM
        self.cost: int = 1 + XPATH_COST * xpaths

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
    condition = parser.condition()
    return Filter(text, condition, parser.properties, parser.xpaths)


def parse_optional(text: str | None) -> Filter | None:
    """Parses a selector. Returns None, which selects every message, for no text or only blanks."""
    if text is None or not text.strip():
        return None
    return parse(text)
