"""Single rules of the replication, by direct calls. The search (test_search.py) covers their interplay."""

from __future__ import annotations

import pytest

from atalanta.ha.lease import LeaseTerms
from atalanta.ha.register import CompareAndSet, Read, Register, RegisterView, found
from atalanta.ha.replication.active import Active
from atalanta.ha.replication.epoch_table import EpochTable, agreement, cut_table
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import (
    Action,
    Activate,
    Answer,
    Block,
    Confirm,
    Cut,
    Ended,
    HandOver,
    Heartbeat,
    Offer,
    Refusal,
    Send,
    Stop,
    Store,
)

SECOND = 1_000_000_000
TERMS = LeaseTerms(SECOND)
LATER = 10 * SECOND
EMPTY = b"\0" * 16


def follower(name: str, table: EpochTable = (), last: int = 0, register: Register | None = None) -> Follower:
    """Returns a follower whose journal ends at `last`, and that has read `register` in version 5."""
    made = Follower(name, RegisterView(name.encode().rjust(8)), TERMS, 0, table, last)
    if register is not None:
        made.on_register(0, 5, register)
    return made


def active(*others: str, last: int = 0, min_in_sync: int = 1) -> Active:
    """Returns A, active in epoch 3 with the named members in sync, all of whom have answered at `LATER`."""
    start = follower("A", ((1, 1),) if last else (), last, Register(2, "B", ("A",), 0, EMPTY))
    (write,) = start.take_over(LATER)
    assert isinstance(write, CompareAndSet)
    assert start.on_register(LATER, 6, write.value) == [Activate(3)]
    made = Active(start, LATER, 5 * SECOND, min_in_sync)
    made.on_durable(LATER, last)
    for other in others:
        made.on_answer(LATER, other, Answer(3, last, last, LATER))
        (write,) = made.join(LATER, other)
        assert isinstance(write, CompareAndSet)
        made.on_register(LATER, made.view.version + 1, write.value)
    return made


# --- epoch tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "own_last", "other", "other_last", "expected"),
    [
        ((), 0, ((1, 1),), 5, 0),
        (((1, 1),), 3, ((1, 1),), 5, 3),
        (((1, 1),), 7, ((1, 1), (2, 6)), 9, 5),
        (((1, 1), (2, 6)), 7, ((1, 1), (3, 4)), 9, 3),
        (((2, 1),), 7, ((3, 1),), 9, 0),
        (((1, 1), (3, 5)), 6, ((1, 1), (2, 3), (3, 5)), 8, 6),
    ],
)
def test_journals_agree_up_to_the_end_of_their_last_common_epoch(
    own: EpochTable, own_last: int, other: EpochTable, other_last: int, expected: int
) -> None:
    assert agreement(own, own_last, other, other_last) == expected
    assert agreement(other, other_last, own, own_last) == expected


def test_a_cut_journal_has_only_the_epochs_that_it_reaches() -> None:
    assert cut_table(((1, 1), (2, 6), (5, 9)), 8) == ((1, 1), (2, 6))


# --- commit point ------------------------------------------------------------------------------------------


def test_an_lsn_is_confirmed_when_every_member_in_sync_and_the_own_disk_have_it() -> None:
    node = active("B", "C")
    node.on_append(LATER, 4)
    assert node.on_answer(LATER, "B", Answer(3, 4, 4, -1)) == []
    assert node.on_durable(LATER, 4) == []
    assert node.on_answer(LATER, "C", Answer(3, 4, 2, -1)) == [Confirm(2)]
    assert node.on_answer(LATER, "C", Answer(3, 4, 4, -1)) == [Confirm(4)]
    assert node.deletable() == 4


def test_an_answer_of_another_epoch_does_not_count() -> None:
    node = active("B")
    node.on_append(LATER, 1)
    node.on_durable(LATER, 1)
    assert node.on_answer(LATER, "B", Answer(2, 1, 1, -1)) == []
    assert node.commit == 0


def test_below_the_minimum_in_sync_nothing_is_confirmed_until_a_member_joins() -> None:
    node = active(min_in_sync=2)
    node.on_append(LATER, 1)
    assert node.on_durable(LATER, 1) == []
    (write,) = (node.on_answer(LATER, "B", Answer(3, 1, 1, LATER)), node.join(LATER, "B"))[1]
    assert isinstance(write, CompareAndSet)
    assert node.on_register(LATER, 7, write.value) == [Confirm(1)]


# --- members ----------------------------------------------------------------------------------------------


def test_a_member_that_lags_is_required_first_and_added_when_it_has_everything() -> None:
    node = active(last=5)
    node.on_answer(LATER, "B", Answer(3, 2, 2, LATER))
    assert node.join(LATER, "B") == []
    node.on_append(LATER, 6)
    assert node.on_durable(LATER, 6) == []  # B is required already
    (write,) = node.on_answer(LATER, "B", Answer(3, 5, 5, -1))
    assert isinstance(write, CompareAndSet)
    assert write.value.in_sync == ("A", "B")
    assert node.on_answer(LATER, "B", Answer(3, 6, 6, -1)) == [Confirm(6)]


def test_a_member_without_a_lease_is_not_added() -> None:
    node = active()
    node.on_answer(LATER, "B", Answer(3, 0, 0, -1))
    assert node.join(LATER, "B") == []
    assert len(node.on_answer(LATER, "B", Answer(3, 0, 0, LATER))) == 1


def test_a_member_too_many_follows_and_is_not_added() -> None:
    node = active(*[f"member {number}" for number in range(15)])
    assert node.on_answer(LATER, "one more", Answer(3, 0, 0, LATER)) == []
    assert node.join(LATER, "one more") == []
    assert "one more" not in node.required()
    assert node.on_answer(LATER, "one more", Answer(3, 0, 0, LATER)) == []


def test_an_asynchronous_member_follows_and_is_never_required() -> None:
    node = active()
    node.set_asynchronous("far", True)
    node.on_answer(LATER, "far", Answer(3, 0, 0, LATER))
    assert node.join(LATER, "far") == []
    node.on_append(LATER, 1)
    assert node.unsent("far") == 1
    assert node.on_durable(LATER, 1) == [Confirm(1)]


def test_a_member_that_became_asynchronous_is_removed_and_gets_no_service() -> None:
    node = active("B")
    node.set_asynchronous("B", True)
    assert node.hand_over(LATER, "B") == []
    heartbeat, write = node.on_tick(LATER)
    assert isinstance(heartbeat, Send) and isinstance(write, CompareAndSet)
    assert write.value.in_sync == ("A",)
    assert node.required() == ["B"], "until the register is known to be without it"
    # An operator wants it to serve.
    node.on_register(LATER, node.view.version + 1, write.value)
    node.set_asynchronous("B", False)
    (write,) = node.join(LATER, "B")
    assert isinstance(write, CompareAndSet) and write.value.in_sync == ("A", "B")


def test_a_member_that_stores_nothing_is_removed_and_required_until_that_is_known() -> None:
    node = active("B")
    node.on_append(LATER, 1)
    node.on_durable(LATER, 1)
    # Heartbeats are answered, but the disk of B hangs.
    node.on_answer(LATER + 4 * SECOND, "B", Answer(3, 1, 0, LATER + 4 * SECOND))
    heartbeat, write = node.on_tick(LATER + 5 * SECOND)
    assert heartbeat == Send("B", Heartbeat(3, LATER + 5 * SECOND, 0))
    assert isinstance(write, CompareAndSet)
    assert write.value.in_sync == ("A",)
    assert node.commit == 0
    assert node.view.on_uncertain() == Read()
    assert node.on_register(LATER, write.version, node.view.known or write.value) == [write]
    assert node.on_register(LATER, write.version + 1, write.value) == [Confirm(1)]


def test_an_idle_member_that_answers_heartbeats_stays() -> None:
    node = active("B")
    for step in range(1, 20):
        now = LATER + step * SECOND
        assert node.on_tick(now) == [Send("B", Heartbeat(3, now, 0))]
        node.on_answer(now, "B", Answer(3, 0, 0, now))


def test_a_member_that_caught_up_too_slowly_is_forgotten_before_it_was_added() -> None:
    node = active(last=5)
    node.on_answer(LATER, "B", Answer(3, 2, 2, LATER))
    node.join(LATER, "B")
    node.on_append(LATER, 6)
    node.on_durable(LATER, 6)
    assert node.drop(LATER, "B") == [Confirm(6)]
    assert node.required() == []


# --- service ----------------------------------------------------------------------------------------------


def test_service_pauses_without_a_lease_and_goes_on_with_one() -> None:
    node = active("B")
    assert node.serves(LATER + SECOND - 1)
    assert not node.serves(LATER + SECOND)
    node.on_answer(LATER + 3 * SECOND, "B", Answer(3, 0, 0, LATER + 2 * SECOND + 5))
    assert node.serves(LATER + 3 * SECOND)


def test_a_higher_epoch_ends_the_service_at_once() -> None:
    node = active("B")
    node.on_append(LATER, 1)
    (stop,) = node.on_refusal(LATER, "B", 4)
    assert stop == Stop("B has epoch 4, this was 3")
    assert not node.serves(LATER) and not node.accepts()
    assert node.on_durable(LATER, 1) == []
    assert node.on_answer(LATER, "B", Answer(3, 1, 1, LATER)) == []


def test_the_register_of_another_active_node_ends_the_service() -> None:
    node = active("B")
    (stop,) = node.on_register(LATER, 99, Register(4, "B", ("B",), 0, EMPTY))
    assert isinstance(stop, Stop)


# --- followers ----------------------------------------------------------------------------------------------


OFFER = Offer(3, ((1, 1), (3, 4)), 9, 7, 0, SECOND)
REGISTER = Register(3, "A", ("A", "B"), 0, EMPTY)


def test_a_follower_reads_the_register_before_it_follows() -> None:
    member = follower("B")
    assert member.on_offer(0, "A", OFFER) == [Read(), Send("A", Refusal(0))]


def test_a_returning_member_cuts_what_the_active_node_does_not_have() -> None:
    member = follower("B", ((1, 1), (2, 6)), 7, REGISTER)
    assert member.on_offer(0, "A", OFFER) == [Cut(3, False), Send("A", Answer(3, 3, 3, -1))]
    assert member.on_block(0, "A", Block(3, 4, 6, 7)) == [Store(4, 6)]
    assert member.on_durable(0, 6) == [Send("A", Answer(3, 6, 6, -1))]
    assert member.deletable() == 6


def test_a_cut_below_a_forced_epoch_may_have_been_confirmed() -> None:
    member = follower("B", ((1, 1), (2, 6)), 7, REGISTER)
    cut, _ = member.on_offer(0, "A", Offer(3, ((1, 1), (3, 4)), 9, 7, 3, SECOND))
    assert cut == Cut(3, True)


def test_an_empty_member_follows_a_journal_whose_beginning_was_deleted() -> None:
    member = follower("B", (), 0, REGISTER)
    assert member.on_offer(0, "A", OFFER) == [Send("A", Answer(3, 0, 0, -1))]
    assert member.on_block(0, "A", Block(3, 5, 6, 0)) == [Store(5, 6)]
    assert member.on_block(0, "A", Block(3, 9, 9, 0)) == [Send("A", Refusal(3))]
    member.on_emptied()
    assert member.on_block(0, "A", Block(3, 9, 9, 0)) == [Store(9, 9)]
    assert member.on_durable(0, 9) == [Send("A", Answer(3, 9, 9, -1))]


def test_a_gap_and_an_older_epoch_are_refused() -> None:
    member = follower("B", ((1, 1),), 3, REGISTER)
    assert member.on_offer(0, "C", Offer(2, ((2, 1),), 1, 0, 0, SECOND)) == [Send("C", Refusal(3))]
    member.on_offer(0, "A", OFFER)
    assert member.on_block(0, "A", Block(3, 5, 6, 0)) == [Send("A", Refusal(3))]
    assert member.on_block(0, "C", Block(2, 4, 4, 0)) == [Send("C", Refusal(3))]
    assert member.on_heartbeat(0, "C", Heartbeat(2, 0, 0)) == [Send("C", Refusal(3))]


def test_a_refused_stream_begins_again_with_an_offer() -> None:
    node = active("B")
    node.on_append(LATER, 3)
    assert node.unsent("B") == 1
    assert node.block("B", 2) == Send("B", Block(3, 1, 2, 0))
    assert node.unsent("B") == 3
    assert node.on_refusal(LATER, "B", 3) == []
    assert node.unsent("B") == 0
    assert node.offer("B") == Send("B", Offer(3, ((3, 1),), 3, 0, 0, SECOND))
    node.on_answer(LATER, "B", Answer(3, 1, 1, -1))
    assert node.unsent("B") == 2


def test_a_follower_keeps_its_promise_and_then_takes_over_in_silence() -> None:
    member = follower("B", (), 0, REGISTER)
    member.on_offer(0, "A", Offer(3, ((3, 1),), 0, 0, 0, SECOND))
    assert member.on_heartbeat(LATER, "A", Heartbeat(3, 77, 0)) == [Send("A", Answer(3, 0, 0, 77))]
    assert member.take_over(LATER + SECOND) == []
    (write,) = member.take_over(LATER + TERMS.wait_ns)
    assert isinstance(write, CompareAndSet)
    assert (write.version, write.value.epoch, write.value.in_sync) == (5, 4, ("B",))
    assert member.on_heartbeat(LATER, "A", Heartbeat(3, 78, 0)) == []
    assert member.on_block(LATER, "A", Block(3, 1, 1, 0)) == []
    assert member.on_offer(LATER, "A", OFFER) == []


def test_a_takeover_without_an_answer_is_repeated_until_the_version_has_moved() -> None:
    member = follower("B", (), 0, REGISTER)
    (write,) = member.take_over(LATER)
    assert isinstance(write, CompareAndSet)
    assert member.on_register(LATER, 5, REGISTER) == [write]
    assert member.on_register(LATER, 6, write.value) == [Activate(4)]


def test_a_takeover_that_lost_follows_the_winner() -> None:
    member = follower("B", (), 0, REGISTER)
    member.take_over(LATER)
    assert member.on_register(LATER, 6, Register(3, "A", ("A",), 0, EMPTY)) == []
    assert member.on_offer(LATER, "A", Offer(3, ((3, 1),), 0, 0, 0, SECOND)) == [Send("A", Answer(3, 0, 0, -1))]


def test_a_process_does_not_go_on_in_an_epoch_that_an_earlier_life_began() -> None:
    """The register already has this value when the answer comes, but the token is of another process."""
    member = follower("A", (), 0, Register(2, "B", ("A",), 0, EMPTY))
    (write,) = member.take_over(LATER)
    assert isinstance(write, CompareAndSet)
    earlier = Register(3, "A", ("A",), 0, b"an earlier life ")
    assert member.on_register(LATER, 6, earlier) == []
    (write,) = member.take_over(LATER)
    assert isinstance(write, CompareAndSet) and write.value.epoch == 4


def test_a_single_node_starts_again_without_waiting_for_a_lease() -> None:
    member = follower("A", (), 0, found("A", 0, EMPTY))
    assert len(member.take_over(0)) == 1


def test_an_operator_promotes_an_asynchronous_member() -> None:
    member = follower("far", ((3, 1),), 5, Register(3, "A", ("A", "B"), 0, EMPTY))
    assert member.take_over(LATER) == []
    (write,) = member.promote(LATER)
    assert isinstance(write, CompareAndSet)
    assert (write.value.epoch, write.value.forced_epoch) == (4, 4)
    assert member.on_register(LATER, 6, write.value) == [Activate(4)]


def test_the_end_of_the_active_process_releases_the_promise_to_it_and_to_nobody_else() -> None:
    node = active("B")
    (stop, send) = node.resign(LATER, "the disk hangs")
    assert send == Send("B", Ended(3))
    assert stop == Stop("the disk hangs")
    assert not node.serves(LATER)
    member = follower("B", (), 0, REGISTER)
    member.on_offer(LATER, "A", Offer(3, ((3, 1),), 0, 0, 0, SECOND))
    member.on_heartbeat(LATER, "A", Heartbeat(3, LATER, 0))
    member.on_ended(LATER, Ended(2))
    assert member.take_over(LATER) == []
    member.on_ended(LATER, Ended(3))
    assert len(member.take_over(LATER)) == 1


# --- handover ----------------------------------------------------------------------------------------------


def hand_over_of(actions: list[Action]) -> HandOver:
    stop, send = actions
    assert isinstance(send, Send) and isinstance(stop, Stop)
    assert isinstance(send.message, HandOver)
    return send.message


def test_a_handover_waits_for_every_answer_and_keeps_the_members() -> None:
    node = active("B")
    node.on_append(LATER, 2)
    node.on_durable(LATER, 2)
    assert node.hand_over(LATER, "B") == []
    assert not node.accepts()
    message = hand_over_of(node.on_answer(LATER, "B", Answer(3, 2, 2, -1))[1:])
    member = follower("B", (), 0, Register(3, "A", ("A",), 0, EMPTY))
    member.on_offer(LATER, "A", Offer(3, ((3, 1),), 2, 0, 0, SECOND))
    member.on_block(LATER, "A", Block(3, 1, 2, 0))
    member.on_durable(LATER, 2)
    member.on_heartbeat(LATER, "A", Heartbeat(3, LATER, 2))
    (write,) = member.on_hand_over(LATER, message)
    assert isinstance(write, CompareAndSet)
    assert (write.value.epoch, write.value.active, write.value.in_sync) == (4, "B", ("A", "B"))


def test_a_handover_to_a_member_that_is_dropped_ends_and_the_service_goes_on() -> None:
    node = active("B")
    node.on_append(LATER, 2)
    node.on_durable(LATER, 2)
    node.hand_over(LATER, "B")
    (write,) = node.drop(LATER, "B")
    assert isinstance(write, CompareAndSet)
    assert node.on_register(LATER, write.version + 1, write.value) == [Confirm(2)]
    assert node.accepts() and node.serves(LATER)


def test_a_member_that_does_not_have_everything_does_not_take_a_handover() -> None:
    member = follower("B", (), 0, REGISTER)
    member.on_offer(LATER, "A", Offer(3, ((3, 1),), 2, 0, 0, SECOND))
    assert member.on_hand_over(LATER, HandOver(3, 2, 5, REGISTER)) == []
    assert member.on_hand_over(LATER, HandOver(2, 0, 5, REGISTER)) == []
