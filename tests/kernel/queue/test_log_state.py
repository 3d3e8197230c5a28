"""The ranges that a log-view reader lost."""

from __future__ import annotations

from atalanta.kernel.queue.log_state import LOST_RANGES_MAX, LogState


def test_lost_ranges_are_joined_when_there_are_too_many_and_never_forgotten() -> None:
    state = LogState()
    for sequence in range(1, 2 * LOST_RANGES_MAX + 10, 2):
        state.add_lost(sequence, "expired")
    assert len(state.lost) == LOST_RANGES_MAX
    assert state.lost[0] == (1, 11, "messages in between, for several reasons")
    covered = [sequence for first, last, _ in state.lost for sequence in range(first, last + 1)]
    assert set(range(1, 2 * LOST_RANGES_MAX + 10, 2)) <= set(covered)
