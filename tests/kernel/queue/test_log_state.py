"""The ranges that a log-view reader lost."""

from __future__ import annotations

from atalanta.kernel.queue.log_state import LOST_RANGES_MAX, LogState


def test_lost_ranges_are_joined_when_there_are_too_many_and_never_forgotten() -> None:
    state = LogState()
    for sequence in range(1, 2 * LOST_RANGES_MAX + 10, 2):
        state.add_lost(sequence, sequence, "expired")
    assert len(state.lost) == LOST_RANGES_MAX
    assert state.lost[0] == (1, 11, "messages in between, for several reasons")
    covered = [sequence for first, last, _ in state.lost for sequence in range(first, last + 1)]
    assert set(range(1, 2 * LOST_RANGES_MAX + 10, 2)) <= set(covered)


def test_ranges_that_were_found_in_another_order_are_joined_without_a_gap() -> None:
    state = LogState()
    for sequence in range(4 * LOST_RANGES_MAX, 0, -2):
        state.add_lost(sequence, sequence, "damaged")
    covered = {sequence for first, last, _ in state.lost for sequence in range(first, last + 1)}
    assert len(state.lost) == LOST_RANGES_MAX and set(range(2, 4 * LOST_RANGES_MAX, 2)) <= covered
    assert state.lost_whole(4 * LOST_RANGES_MAX - 4, 4 * LOST_RANGES_MAX) and not state.lost_whole(1, 2)
