"""The arithmetic of leases of a replicated group."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atalanta.ha.lease import ActiveLease, LeaseTerms, Promise

SECOND = 1_000_000_000
MILLION = 1_000_000


@given(st.integers(1, 60 * SECOND), st.integers(0, 200_000))
def test_the_slowest_holder_ends_before_the_fastest_granter(length: int, drift: int) -> None:
    terms = LeaseTerms(length, drift)
    holder = Fraction(terms.length_ns * MILLION, MILLION - drift)
    granter = Fraction(terms.wait_ns * MILLION, MILLION + drift)
    assert holder <= granter < holder + 1


def test_one_and_two_drifts_are_not_enough() -> None:
    """length · (1 + 2 · drift) is too short by 2 · drift² of it."""
    assert LeaseTerms(SECOND, 1000).wait_ns > SECOND + 2 * SECOND // 1000


def test_an_impossible_drift_is_refused() -> None:
    with pytest.raises(ValueError, match="0 to 999999 are possible"):
        LeaseTerms(SECOND, MILLION)


def test_a_lease_counts_from_the_sending_of_the_heartbeat() -> None:
    lease = ActiveLease(LeaseTerms(SECOND))
    lease.on_answer("B", 5 * SECOND)
    assert lease.holds(6 * SECOND - 1, ["B"])
    assert not lease.holds(6 * SECOND, ["B"])


def test_a_lease_needs_every_member_and_none_when_alone() -> None:
    lease = ActiveLease(LeaseTerms(SECOND))
    assert lease.holds(99 * SECOND, [])
    lease.on_answer("B", 5 * SECOND)
    assert not lease.holds(5 * SECOND, ["B", "C"])


def test_an_old_answer_does_not_shorten_a_lease() -> None:
    lease = ActiveLease(LeaseTerms(SECOND))
    lease.on_answer("B", 5 * SECOND)
    lease.on_answer("B", 4 * SECOND)
    assert lease.holds(5 * SECOND, ["B"])


def test_a_process_that_has_started_keeps_the_promise_of_its_earlier_life() -> None:
    terms = LeaseTerms(SECOND)
    promise = Promise(terms, 100)
    assert not promise.is_over(100 + SECOND)
    assert promise.is_over(100 + terms.wait_ns)
    promise.renew(SECOND)
    assert not promise.is_over(100 + terms.wait_ns)
    promise.release()
    assert promise.is_over(100)
