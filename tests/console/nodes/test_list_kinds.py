"""Values of the brokers' lists."""

from __future__ import annotations

import pytest

from atalanta.console.nodes.list_kinds import date_of, flag_of, number_of, text_of


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("Tue Dec 01 10:19:28 UTC 2026", 1_796_120_368_000),
        ("Tue Dec 01 10:19:28 CET 2026", "Tue Dec 01 10:19:28 CET 2026"),
        ("1796120368000", 1_796_120_368_000),
        (1_796_120_368_000, 1_796_120_368_000),
        ("0", None),
        ("", None),
        (None, None),
    ],
)
def test_dates(value: object, found: object) -> None:
    assert date_of(value) == found


def test_values_of_another_form_are_not_told() -> None:
    assert [number_of(each) for each in ("7", 7, "-1", "7.5", "x", True, None, "9" * 30)] == [7, 7, -1] + [None] * 5
    assert [flag_of(each) for each in ("true", False, "TRUE", 1)] == [True, False, None, None]
    assert [text_of(each) for each in ("a", "", None, 5)] == ["a", None, None, "5"]
