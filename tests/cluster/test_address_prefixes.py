"""The `address` of a cluster connection: prefixes, exclusions, and what two of them share."""

from __future__ import annotations

import pytest

from atalanta.cluster.address_prefixes import Covered, overlaps, shown


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("", ["orders", "x"], []),
        ("eu", ["eu", "eu.orders", "europe"], ["us.eu"]),
        ("eu,us", ["eu.a", "us.b"], ["asia"]),
        ("!eu", ["us", "orders"], ["eu", "eu.orders"]),
        ("eu,!eu.uk", ["eu.fr"], ["eu.uk", "eu.uk.orders", "us"]),
        ("!eu.uk,eu", ["eu.fr"], ["eu.uk.orders"]),  # exclusion wins wherever it stands
        ("eu,!eu", [], ["eu", "eu.x", "us"]),
        ("eu.*", ["eu.*.x"], ["eu.fr"]),  # no wildcards
        ("eu.#", [], ["eu.fr"]),
        ("e_", ["e_x"], ["eu"]),
        ("%", ["%x"], ["eu"]),
        (" eu , us ", ["eu.x", "us.x"], ["asia"]),
    ],
)
def test_prefixes(text: str, inside: list[str], outside: list[str]) -> None:
    covered = Covered(text)
    assert [name for name in inside if not covered.covers(name)] == []
    assert [name for name in outside if covered.covers(name)] == []


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("", "", ""),
        ("", "eu", "eu"),
        ("eu", "eu.uk", "eu.uk"),
        ("eu", "us", None),
        ("eu,!eu.uk", "eu.uk", None),
        ("!eu", "eu", None),
        ("!eu", "", ""),
        ("eu,us", "asia,us.ny", "us.ny"),
    ],
)
def test_what_two_share(one: str, other: str, common: str | None) -> None:
    assert Covered(one).overlap(Covered(other)) == common
    assert Covered(other).overlap(Covered(one)) == common


def test_pairs_are_named() -> None:
    found = overlaps([("a", "eu"), ("b", "us"), ("c", "eu.uk,us")])
    assert found == [("a", "c", "eu.uk"), ("b", "c", "us")]
    assert [shown(common) for _, _, common in overlaps([("a", ""), ("b", "")])] == ["all addresses"]
