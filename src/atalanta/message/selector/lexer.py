"""Tokens of a selector.

The lexical rules are those of Artemis' StrictParser.jj (2.44): comments, string literals with doubled quotes,
decimal, octal, hexadecimal and floating literals, identifiers that begin with a letter, `_` or `$`. Artemis'
extensions are `"quoted identifiers"` and hyphens after the prefix `hyphenated_props:`.
"""

from __future__ import annotations

from typing import Final

END: Final = 0
IDENTIFIER: Final = 1
STRING: Final = 2
INTEGER: Final = 3
FLOAT: Final = 4
SYMBOL: Final = 5
KEYWORD: Final = 6

LENGTH_MAX: Final = 64 * 1024  # characters; a cluster's notification filter lists whole addresses
TOKENS_MAX: Final = 8_192  # limits the work of one evaluation

KEYWORDS: Final = frozenset(
    {
        "NOT",
        "AND",
        "OR",
        "BETWEEN",
        "LIKE",
        "ESCAPE",
        "IN",
        "IS",
        "TRUE",
        "FALSE",
        "NULL",
        "XPATH",
        "XQUERY",
    }
)
DIGITS: Final = "0123456789"
HEX_DIGITS: Final = "0123456789abcdefABCDEF"
SPACE: Final = " \t\n\r\f"


class FilterError(Exception):
    """An invalid selector: `text` is the reason, `column` the position (1 is the first character)."""

    def __init__(self, text: str, column: int) -> None:
        super().__init__(f"{text} (column {column})")
        self.text = text
        self.column = column


class Token:
    """A token. `text` is normalized: keywords in upper case, strings without quotes."""

    def __init__(self, kind: int, text: str, column: int) -> None:
        self.kind = kind
        self.text = text
        self.column = column


class Lexer:
    """The scanner that splits a selector into tokens; the last token is END."""

    def __init__(self, text: str, hyphens: bool, at: int = 0) -> None:
        self.text = text
        self.hyphens = hyphens
        self.at: int = at
        self.length: int = len(text)

    def tokens(self) -> list[Token]:
        """Returns all tokens. Raises FilterError for an invalid character and for more than TOKENS_MAX tokens."""
        found: list[Token] = []
        while True:
            self._skip()
            if self.at >= self.length:
                found.append(Token(END, "", self.at + 1))
                return found
            if len(found) >= TOKENS_MAX:
                raise FilterError(f"more than {TOKENS_MAX} terms", self.at + 1)
            found.append(self._token())

    def _skip(self) -> None:
        text = self.text
        while self.at < self.length:
            if text[self.at] in SPACE:
                self.at += 1
            elif text.startswith("/*", self.at):
                end = text.find("*/", self.at + 2)
                if end < 0:
                    raise FilterError("a comment does not end", self.at + 1)
                self.at = end + 2
            elif text.startswith("--", self.at):
                end = text.find("\n", self.at)
                if end < 0:
                    return  # like Artemis: without a line end these are two minus signs
                self.at = end + 1
            else:
                return

    def _token(self) -> Token:
        character = self.text[self.at]
        if character == "'":
            return self._quoted("'", STRING)
        if character == '"':
            return self._quoted('"', IDENTIFIER)
        if character in DIGITS:
            return self._number()
        if character == "." and self._digit_at(self.at + 1):
            return self._number()
        if character == "_" or character == "$" or character.isalpha():
            return self._word()
        return self._symbol()

    def _digit_at(self, at: int) -> bool:
        return at < self.length and self.text[at] in DIGITS

    def _quoted(self, quote: str, kind: int) -> Token:
        start = self.at
        at = start + 1
        while True:
            end = self.text.find(quote, at)
            if end < 0:
                raise FilterError("a quoted text does not end", start + 1)
            if end + 1 < self.length and self.text[end + 1] == quote:
                at = end + 2
                continue
            break
        self.at = end + 1
        content = self.text[start + 1 : end].replace(quote + quote, quote)
        if kind == IDENTIFIER and not content:
            raise FilterError("a quoted identifier is empty", start + 1)
        return Token(kind, content, start + 1)

    def _word(self) -> Token:
        start = self.at
        at = start + 1
        while at < self.length:
            character = self.text[at]
            if character.isalnum() or character == "_" or character == "$":
                at += 1
            elif character == "-" and self.hyphens:
                at += 1
            else:
                break
        self.at = at
        word = self.text[start:at]
        upper = word.upper()
        if upper in KEYWORDS:
            return Token(KEYWORD, upper, start + 1)
        return Token(IDENTIFIER, word, start + 1)

    def _digits(self, at: int, allowed: str) -> int:
        while at < self.length and self.text[at] in allowed:
            at += 1
        return at

    def _number(self) -> Token:
        start = self.at
        text = self.text
        if text.startswith(("0x", "0X"), start):
            end = self._digits(start + 2, HEX_DIGITS)
            if end > start + 2:
                if end - start > 40:
                    raise FilterError("a number has too many digits", start + 1)
                self.at = end
                return Token(INTEGER, str(int(text[start + 2 : end], 16)), start + 1)
        end = self._digits(start, DIGITS)
        fraction = end < self.length and text[end] == "."
        if fraction:
            end = self._digits(end + 1, DIGITS)
        exponent = self._exponent(end)
        if fraction or exponent > end:
            self.at = exponent
            return Token(FLOAT, text[start:exponent], start + 1)
        self.at = end
        return self._integer(start, end)

    def _exponent(self, at: int) -> int:
        """Returns the end of an exponent that begins at `at`, or `at` if there is none."""
        if at >= self.length or self.text[at] not in "eE":
            return at
        first = at + 1
        if first < self.length and self.text[first] in "+-":
            first += 1
        end = self._digits(first, DIGITS)
        return end if end > first else at

    def _integer(self, start: int, end: int) -> Token:
        digits = self.text[start:end]
        if len(digits) > 40:
            raise FilterError("a number has too many digits", start + 1)
        if digits[0] == "0":
            if "8" in digits or "9" in digits:
                raise FilterError(f"'{digits}' begins with 0 but is not octal", start + 1)
            return Token(INTEGER, str(int(digits, 8)), start + 1)
        if self.at < self.length and self.text[self.at] in "lL":
            self.at += 1
        return Token(INTEGER, digits, start + 1)

    def _symbol(self) -> Token:
        start = self.at
        pair = self.text[start : start + 2]
        if pair in ("<>", "<=", ">="):
            self.at = start + 2
            return Token(SYMBOL, pair, start + 1)
        if pair == "!=":
            raise FilterError("'!=' is written '<>' in a selector", start + 1)
        character = self.text[start]
        if character not in "=<>+-*/%(),":
            raise FilterError(f"unexpected character {character!r}", start + 1)
        self.at = start + 1
        return Token(SYMBOL, character, start + 1)
