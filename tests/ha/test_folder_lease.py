"""The lease of a shared folder: what its holder may do, and how long a candidate and a taker wait."""

from __future__ import annotations

import pytest

from atalanta.ha.folder_lease import (
    ACTIVE,
    RELEASED,
    STOPPED,
    EpochView,
    FolderCandidate,
    FolderHolder,
    FolderRecord,
)
from atalanta.ha.lease import LeaseTerms

SECOND = 1_000_000_000
TERMS = LeaseTerms(SECOND)


def view(epoch: int, content: bytes, complete: bool = True, gone: bool = False, **record: object) -> EpochView:
    values: dict[str, object] = {"epoch": epoch, "holder": "A", "renewals": 1, "length_ns": SECOND, **record}
    return EpochView(epoch, complete, FolderRecord(**values), content, gone)  # type: ignore[arg-type]


def test_a_holder_delivers_from_its_first_renewal_to_the_end_of_its_lease() -> None:
    holder = FolderHolder(TERMS, 3, "A")
    assert not holder.may_deliver(0)
    holder.on_renewed(5, next_exists=False)
    assert holder.may_deliver(SECOND + 4)
    assert not holder.may_deliver(SECOND + 5)


def test_a_holder_confirms_without_a_clock_until_the_next_epoch_exists() -> None:
    holder = FolderHolder(TERMS, 3, "A")
    assert holder.may_confirm(next_exists=False)
    assert not holder.may_confirm(next_exists=True)
    # It is final: also a clock that stands still gives nothing back.
    assert not holder.may_confirm(next_exists=False)
    holder.on_renewed(5, next_exists=False)
    assert not holder.may_deliver(5)


def test_each_attempt_to_renew_is_another_record_and_has_the_clock_of_the_node() -> None:
    holder = FolderHolder(TERMS, 3, "A")
    first = holder.next_record(100)
    second = holder.next_record(50)  # the node has begun, and the clock of the former holder was wrong
    assert (first.renewals, first.clock_ns) == (1, 100)
    assert (second.renewals, second.clock_ns) == (2, 50)


def test_a_candidate_waits_from_the_last_change() -> None:
    candidate = FolderCandidate(TERMS)
    assert not candidate.may_take(99 * SECOND, primary=True)
    candidate.on_look(10, view(3, b"1"))
    candidate.on_look(20, view(3, b"1"))
    assert candidate.may_take(10 + TERMS.wait_ns, primary=False) == "no renewal for 1.0 s"
    candidate.on_look(30, view(3, b"2"))
    assert not candidate.may_take(10 + TERMS.wait_ns, primary=True)
    candidate.on_look(40, view(4, b"2"))
    assert not candidate.may_take(30 + TERMS.wait_ns, primary=True)
    assert candidate.may_take(40 + TERMS.wait_ns, primary=True)


def test_a_candidate_waits_for_the_longer_lease_of_the_holder() -> None:
    candidate = FolderCandidate(TERMS)
    candidate.on_look(0, view(3, b"1", length_ns=5 * SECOND))
    assert not candidate.may_take(5 * SECOND, primary=True)
    assert candidate.may_take(LeaseTerms(5 * SECOND).wait_ns, primary=True)


def test_a_holder_that_starts_is_given_time_unless_its_process_has_ended() -> None:
    holder = FolderHolder(TERMS, 3, "A", patience_ns=60 * SECOND)
    starting = holder.next_record(0)
    holder.serves()
    serving = holder.next_record(0)
    candidate = FolderCandidate(TERMS)
    candidate.on_look(0, EpochView(3, True, starting, b"1"))
    assert not candidate.may_take(60 * SECOND - 1, primary=True)
    assert candidate.may_take(60 * SECOND, primary=True)
    # Its lease is not longer: a taker does not wait for more.
    assert candidate.wait_ns(0, EpochView(3, True, starting, b"2")) == TERMS.wait_ns
    candidate.on_look(0, EpochView(3, True, starting, b"1", holder_gone=True))
    assert candidate.may_take(0, primary=True)
    candidate.on_look(0, EpochView(3, True, serving, b"3"))
    assert candidate.may_take(TERMS.wait_ns, primary=True)


def test_who_may_take_without_a_wait() -> None:
    candidate = FolderCandidate(TERMS)
    for seen, primary, backup in (
        (EpochView(0), True, False),
        (view(3, b"", state=RELEASED), True, True),
        (view(3, b"", state=STOPPED), True, False),
        (view(3, b"", state=STOPPED, gone=True), True, False),
        (view(3, b"", gone=True), True, True),
        (view(3, b""), False, False),
        (EpochView(3), False, False),
    ):
        candidate.on_look(0, seen)
        assert bool(candidate.may_take(0, primary=True)) == primary, seen
        assert bool(candidate.may_take(0, primary=False)) == backup, seen


def test_a_taker_waits_out_a_renewal_that_it_had_not_seen() -> None:
    candidate = FolderCandidate(TERMS)
    candidate.on_look(0, view(3, b"1"))
    made_ns = TERMS.wait_ns + 7
    assert candidate.wait_ns(made_ns, view(3, b"1")) == 0
    assert candidate.wait_ns(made_ns, view(3, b"2")) == TERMS.wait_ns
    # Taken early, by an operator.
    assert candidate.wait_ns(7, view(3, b"1")) == TERMS.wait_ns - 7
    assert candidate.wait_ns(7, view(3, b"2", state=RELEASED)) == 0
    assert candidate.wait_ns(7, view(3, b"2", gone=True)) == 0
    assert candidate.wait_ns(7, EpochView(0)) == 0


def test_a_taker_over_an_incomplete_epoch_waits_for_the_one_before() -> None:
    candidate = FolderCandidate(TERMS)
    candidate.on_look(0, view(3, b"1", complete=False, gone=True))
    assert candidate.wait_ns(99 * SECOND, view(3, b"1", complete=False, gone=True)) == TERMS.wait_ns
    assert candidate.wait_ns(99 * SECOND, view(3, b"1", complete=False, state=RELEASED)) == TERMS.wait_ns


@pytest.mark.parametrize("state", [ACTIVE, RELEASED, STOPPED])
def test_the_clock_of_a_holder_runs_on_from_what_was_seen_of_it(state: str) -> None:
    """Without its lease: how the holder has ended does not matter."""
    candidate = FolderCandidate(TERMS)
    record = FolderRecord(2, "B", 1, state, SECOND, 700)
    candidate.on_look(50, EpochView(2, True, record, b"1"))
    candidate.on_look(60, EpochView(2, True, record, b"1"))
    assert candidate.last_instant(90, record).at(100) == 750
    # It has renewed after the last look: it is known as of now.
    newer = FolderRecord(2, "B", 2, state, SECOND, 740)
    assert candidate.last_instant(90, newer).at(100) == 750
    assert candidate.last_instant(90, None).at(100) == 0
