"""Streams are collected; whoever waits for an answer never sees a pause."""

from __future__ import annotations

from atalanta.runtime.read_pause import (
    CLOSE_NS,
    PAUSE_FIRST_NS,
    PAUSE_MAX_NS,
    ROW_MAX,
    ROW_MIN,
    ReadPause,
)

TURN_NS = 20_000


class Turns:
    """Plays turns; `awaited` and what lies between two of them are arguments."""

    def __init__(self) -> None:
        self.pause = ReadPause()
        self.now = 10**18
        self.pause.turn_ended(self.now, True)

    def play(self, pattern: str, gap_ns: int = TURN_NS) -> list[int]:
        """The pauses after each turn: "." is a silent one, "w" one that wrote."""
        pauses = []
        for turn in pattern:
            self.now += gap_ns
            pauses.append(self.pause.turn_ended(self.now, turn == "w"))
            self.now += pauses[-1]
        return pauses


def test_a_row_of_silent_turns_brings_longer_and_longer_pauses() -> None:
    pauses = Turns().play("." * (ROW_MIN + 4))
    first = [0] * (ROW_MIN - 1) + [PAUSE_FIRST_NS, 2 * PAUSE_FIRST_NS]
    assert pauses == [*first, PAUSE_MAX_NS, PAUSE_MAX_NS, PAUSE_MAX_NS]


def test_an_answer_ends_the_pauses_of_a_short_row() -> None:
    turns = Turns()
    assert turns.play("." * ROW_MIN)[-1] == PAUSE_FIRST_NS
    assert not any(turns.play("w..."))


def test_after_an_answer_pauses_begin_short_again() -> None:
    turns = Turns()
    turns.play("." * 2 * ROW_MAX)
    assert turns.play("w..") == [0, PAUSE_FIRST_NS, 2 * PAUSE_FIRST_NS]


def test_requests_and_deliveries_with_their_acknowledgements_never_pause() -> None:
    for pattern in ("w", "w.", "ww.", "w...."):
        assert not any(Turns().play(pattern * 200)), pattern


def test_sparse_turns_never_pause() -> None:
    assert not any(Turns().play("." * 200, CLOSE_NS + 1))


def test_turns_that_have_enough_to_do_never_pause_again() -> None:
    turns = Turns()
    turns.play("." * ROW_MAX)
    assert not any(turns.play("." * 20, CLOSE_NS + 1))


def test_a_pause_that_lasted_longer_than_asked_for_is_no_gap() -> None:
    turns = Turns()
    turns.play("." * ROW_MAX)
    turns.now += CLOSE_NS // 2
    assert turns.play(".") == [PAUSE_MAX_NS]
