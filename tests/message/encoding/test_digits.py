"""Texts that are taken for whole numbers."""

from __future__ import annotations

import pytest

from atalanta.message.encoding.digits import all_digits


@pytest.mark.parametrize("text", ["0", "7", "080", "61616", "99999"])
def test_one_digit_up_to_as_many_as_there_may_be(text: str) -> None:
    assert all_digits(text, 5)


@pytest.mark.parametrize(
    "text",
    ["", "100000", "9" * 5_000, "-1", "+1", " 1", "1 ", "1_0", "1.0", "0x1", "1e3", "²", "١٢", "१२"],
)
def test_nothing_else_even_where_int_takes_it(text: str) -> None:
    assert not all_digits(text, 5)
