"""The arithmetic of leases, for a replicated group and for a shared folder."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atalanta.ha.lease import (
    FolderCandidate,
    FolderHolder,
    FolderRecord,
    Lease,
    LeaseTerms,
    Promise,
)

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
    lease = Lease(LeaseTerms(SECOND))
    lease.on_answer("B", 5 * SECOND)
    assert lease.holds(6 * SECOND - 1, ["B"])
    assert not lease.holds(6 * SECOND, ["B"])


def test_a_lease_needs_every_member_and_none_when_alone() -> None:
    lease = Lease(LeaseTerms(SECOND))
    assert lease.holds(99 * SECOND, [])
    lease.on_answer("B", 5 * SECOND)
    assert not lease.holds(5 * SECOND, ["B", "C"])


def test_an_old_answer_does_not_shorten_a_lease() -> None:
    lease = Lease(LeaseTerms(SECOND))
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


# --- shared folder -----------------------------------------------------------------------------------------


def holder() -> FolderHolder:
    return FolderHolder(LeaseTerms(SECOND), FolderRecord(3, "A.1", 0), 0)


def test_a_holder_delivers_until_its_lease_ends() -> None:
    first = holder()
    assert first.may_deliver(SECOND - 1)
    assert not first.may_deliver(SECOND)
    first.on_renewed(first.renewed(), SECOND // 2)
    assert first.may_deliver(SECOND)
    assert not first.may_deliver(SECOND * 3 // 2)


def test_a_holder_confirms_without_a_clock_until_another_one_has_the_file() -> None:
    first = holder()
    assert first.may_confirm(first.record)
    assert not first.may_confirm(FolderRecord(4, "B.1", 0))
    # It is final: also a clock that stands still gives nothing back.
    assert not first.may_confirm(first.record)
    assert not first.may_deliver(0)


def test_another_process_of_the_same_node_is_another_holder() -> None:
    first = holder()
    assert not first.may_confirm(FolderRecord(3, "A.2", 0))


def test_a_renewal_of_unknown_outcome_extends_nothing_when_it_is_repeated() -> None:
    first = holder()
    unknown = first.renewed()
    first.on_read(unknown)  # it had succeeded, at an unknown time
    first.on_renewed(unknown, SECOND // 2)
    assert not first.may_deliver(SECOND)
    assert first.renewed() == FolderRecord(3, "A.1", 2)


def test_a_candidate_waits_from_the_last_change() -> None:
    terms = LeaseTerms(SECOND)
    candidate = FolderCandidate(terms, "B.1")
    assert not candidate.may_take(99 * SECOND)
    candidate.on_read(10, FolderRecord(3, "A.1", 0))
    candidate.on_read(20, FolderRecord(3, "A.1", 0))
    assert candidate.may_take(10 + terms.wait_ns)
    candidate.on_read(30, FolderRecord(3, "A.1", 1))
    assert not candidate.may_take(10 + terms.wait_ns)
    assert candidate.may_take(30 + terms.wait_ns)
    assert candidate.taken() == FolderRecord(4, "B.1", 0)
