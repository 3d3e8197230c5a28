"""Limits are shared by backlog."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atalanta.spark.read.batch_plan import share


def test_shares_follow_the_backlog() -> None:
    assert share(100, {"a": 900, "b": 100}) == {"a": 90, "b": 10}


def test_a_limit_beyond_the_backlog_takes_all() -> None:
    assert share(1000, {"a": 3, "b": 0, "c": 7}) == {"a": 3, "c": 7}


def test_a_short_backlog_is_not_starved() -> None:
    assert share(100, {"a": 1_000_000, "b": 1})["b"] == 1


def test_fewer_than_one_each_goes_to_the_longest() -> None:
    assert share(1, {"a": 5, "b": 9}) == {"a": 0, "b": 1}


@given(
    st.integers(1, 10**9),
    st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(0, 10**12)),
)
def test_shares_add_up_and_fit(limit: int, weights: dict[str, int]) -> None:
    shares = share(limit, weights)
    assert sum(shares.values()) == min(limit, sum(weights.values()))
    assert all(0 <= amount <= weights[name] for name, amount in shares.items())
