"""The register: its decisions, writes of unknown outcome, and its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atalanta.ha.register import (
    CompareAndSet,
    Read,
    Register,
    RegisterDamaged,
    RegisterRefused,
    RegisterView,
    add_member,
    decode_register,
    encode_register,
    found,
    hand_over,
    promote,
    remove_member,
    take_over,
)

TOKEN = b"0123456789abcdef"
PAIR = Register(4, "A", ("A", "B"), 0, TOKEN)


def view_of(register: Register, version: int = 7) -> RegisterView:
    view = RegisterView(b"lifetime")
    view.on_read(version, register)
    return view


# --- decisions -----------------------------------------------------------------------------------------


def test_the_first_epoch_begins_with_a_takeover_of_the_founder() -> None:
    register = take_over(found("A", 0, TOKEN), "A", TOKEN)
    assert (register.epoch, register.active, register.in_sync) == (1, "A", ("A",))


def test_a_lost_register_is_not_founded_again() -> None:
    with pytest.raises(RegisterRefused, match="epoch 3: restore the register, or promote"):
        found("A", 3, TOKEN)


def test_only_a_member_in_sync_takes_over_and_it_is_alone_then() -> None:
    taken = take_over(PAIR, "B", TOKEN)
    assert (taken.epoch, taken.active, taken.in_sync) == (5, "B", ("B",))
    with pytest.raises(RegisterRefused, match=r"C is not in sync \(A, B are\)"):
        take_over(PAIR, "C", TOKEN)


def test_a_handover_keeps_the_members() -> None:
    handed = hand_over(PAIR, "B", TOKEN)
    assert (handed.epoch, handed.active, handed.in_sync) == (5, "B", ("A", "B"))
    with pytest.raises(RegisterRefused, match="C is not in sync: wait"):
        hand_over(PAIR, "C", TOKEN)


def test_the_active_node_changes_the_members_within_its_epoch() -> None:
    added = add_member(PAIR, "A", "0", TOKEN)
    assert (added.epoch, added.in_sync) == (4, ("0", "A", "B"))
    removed = remove_member(PAIR, "A", "B", TOKEN)
    assert (removed.epoch, removed.in_sync) == (4, ("A",))
    with pytest.raises(RegisterRefused, match="A is: only the active node changes"):
        add_member(PAIR, "B", "C", TOKEN)
    with pytest.raises(RegisterRefused, match="A is: only the active node changes"):
        remove_member(PAIR, "B", "A", TOKEN)
    with pytest.raises(RegisterRefused, match="hand over first"):
        remove_member(PAIR, "A", "A", TOKEN)


def test_a_group_has_at_most_16_members() -> None:
    names = tuple(f"{number:02}" for number in range(16))
    with pytest.raises(RegisterRefused, match="remove one first"):
        add_member(Register(1, "00", names, 0, TOKEN), "00", "16", TOKEN)


def test_an_operator_promotes_a_member_above_every_known_epoch() -> None:
    promoted = promote(PAIR, "far", 2, TOKEN)
    assert (promoted.epoch, promoted.in_sync, promoted.forced_epoch) == (5, ("far",), 5)
    # The register of a data centre that comes back may have gone on: no epoch of it is used twice.
    assert promote(None, "far", 9, TOKEN).epoch > 60_000
    # The mark stays, so that members that return later know.
    assert take_over(promoted, "far", TOKEN).forced_epoch == 5


# --- writes of unknown outcome --------------------------------------------------------------------------


def test_a_write_without_an_answer_is_read_back_and_repeated_unchanged() -> None:
    view = view_of(PAIR)
    value = remove_member(PAIR, "A", "B", view.token())
    request = view.write(value)
    assert request == CompareAndSet(7, value)
    assert view.on_uncertain() == Read()
    view.on_read(7, PAIR)  # not yet there: the write may still arrive
    assert view.pending == value
    assert view.repeated() == request
    assert view.possible_members() == ["A", "B"]
    view.on_read(8, value)
    assert view.repeated() is None
    assert view.possible_members() == ["A"]


def test_a_higher_version_of_another_writer_settles_a_write() -> None:
    view = view_of(PAIR)
    view.write(remove_member(PAIR, "A", "B", view.token()))
    view.on_read(8, take_over(PAIR, "B", TOKEN))
    assert view.pending is None
    assert view.known is not None and view.known.active == "B"


def test_an_old_answer_changes_nothing() -> None:
    view = view_of(PAIR)
    view.on_read(3, found("A", 0, TOKEN))
    assert view.known == PAIR


def test_members_are_counted_in_both_outcomes() -> None:
    view = view_of(PAIR)
    view.write(add_member(PAIR, "A", "C", view.token()))
    assert view.possible_members() == ["A", "B", "C"]
    assert view.certain_members() == 2
    view = view_of(PAIR)
    view.write(remove_member(PAIR, "A", "B", view.token()))
    assert view.certain_members() == 1


def test_tokens_differ_between_writes_and_processes() -> None:
    one, other = RegisterView(b"process1"), RegisterView(b"process2")
    tokens = [one.token(), one.token(), other.token()]
    assert len(set(tokens)) == 3
    assert [len(token) for token in tokens] == [16, 16, 16]


# --- bytes ----------------------------------------------------------------------------------------------


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)


@given(
    st.lists(NAMES, min_size=1, max_size=16, unique=True).map(sorted),
    st.integers(1, 2**64 - 1), st.integers(0, 2**64 - 1), st.binary(min_size=16, max_size=16),
)  # fmt: skip
def test_a_register_is_decoded_as_it_was_encoded(
    names: list[str], epoch: int, forced: int, token: bytes
) -> None:
    register = Register(epoch, names[0], tuple(names), min(forced, epoch), token)
    assert decode_register(encode_register(register)) == register


def test_a_founded_register_is_decoded() -> None:
    register = found("A", 0, TOKEN)
    assert decode_register(encode_register(register)) == register


def test_every_cut_and_every_byte_too_many_is_refused() -> None:
    data = encode_register(PAIR)
    for size in range(len(data)):
        with pytest.raises(RegisterDamaged):
            decode_register(data[:size])
    with pytest.raises(RegisterDamaged):
        decode_register(data + b"\0")


@given(st.binary(max_size=80))
def test_damaged_bytes_raise_nothing_else(data: bytes) -> None:
    for given_data in (data, b"\1" + data, encode_register(PAIR)[:33] + data):
        try:
            register = decode_register(given_data)
        except RegisterDamaged:
            continue
        assert encode_register(register) == given_data


@pytest.mark.parametrize(
    "register",
    [
        Register(4, "C", ("A", "B"), 0, TOKEN),
        Register(4, "A", ("B", "A"), 0, TOKEN),
        Register(4, "A", ("A", "A"), 0, TOKEN),
        Register(4, "", ("A",), 0, TOKEN),
        Register(0, "A", ("A",), 0, TOKEN),
        Register(0, "", (), 0, TOKEN),
        Register(4, "A", ("A",), 5, TOKEN),
    ],
)
def test_an_impossible_register_is_refused(register: Register) -> None:
    with pytest.raises(RegisterDamaged):
        decode_register(encode_register(register))


def test_another_format_is_named() -> None:
    with pytest.raises(RegisterDamaged, match="format 2, this program reads format 1"):
        decode_register(b"\2" + encode_register(PAIR)[1:])


def test_what_does_not_fit_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="at most 255"):
        encode_register(Register(1, "A" * 256, ("A" * 256,), 0, TOKEN))
    with pytest.raises(ValueError, match="16 bytes"):
        encode_register(Register(1, "A", ("A",), 0, b"short"))
