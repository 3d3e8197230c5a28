"""Check of numbers in text from a peer. The number of digits is limited before int() parses them."""

from __future__ import annotations


def all_digits(text: str, digits_max: int) -> bool:
    """Returns True if `text` is one to `digits_max` ASCII digits.

    int() alone also accepts other digits, blanks, signs and underscores.
    """
    return text.isascii() and text.isdigit() and len(text) <= digits_max
