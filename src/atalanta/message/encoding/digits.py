"""Whole numbers written as text, from whoever: how many digits they have is looked at before int() is."""

from __future__ import annotations


def all_digits(text: str, digits_max: int) -> bool:
    """Whether `text` is one to `digits_max` ASCII digits. (int() takes other digits, blanks, signs and _, too.)"""
    return text.isascii() and text.isdigit() and len(text) <= digits_max
