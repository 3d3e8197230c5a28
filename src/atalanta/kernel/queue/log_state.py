"""A queue's log-view state: leases, the sequences acknowledged and shown, and the ranges a reader lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.log.lease import Lease
    from atalanta.kernel.queue.paging.retained_ranges import RetainedRanges

LOST_RANGES_MAX: Final = 1_000  # of a queue; then the two oldest become one, with all that lies between them


class LogState:
    """The part of a queue that only log views use (kernel/log/log_views.py).

    Everything up to `acked_through` is acknowledged. A reader has been shown messages up to `shown_through`. Messages
    behind `show_until` are not shown; -1: no such limit. `lost` holds (first, last, reason). `retained`: acknowledged
    messages that can be read again; None without a retention.
    """

    def __init__(self) -> None:
        self.acked_through: int = 0
        self.shown_through: int = 0
        self.show_until: int = -1
        self.leases: dict[str, Lease] = {}
        self.lost: list[tuple[int, int, str]] = []
        self.retained: RetainedRanges | None = None

    def active_lease(self) -> Lease | None:
        """Returns the lease that pins the queue; None without one."""
        for lease in self.leases.values():
            if lease.active:
                return lease
        return None

    def retain(self, retained: RetainedRanges | None) -> None:
        """Sets the retained messages; None ends the retention."""
        self.retained = retained

    def released_through(self) -> int:
        """Returns the sequence up to which no message can be read (again)."""
        return self.acked_through if self.retained is None else self.retained.released_through

    def reader_position(self) -> int:
        """Returns the sequence up to which the reader has acknowledged: in a replay one of the retained messages'."""
        retained = self.retained
        return self.acked_through if retained is None or retained.replay_from < 0 else retained.replay_from

    def acknowledge_through(self, sequence: int) -> None:
        """Records that everything up to `sequence` is acknowledged; a lower one changes nothing."""
        if sequence > self.acked_through:
            self.acked_through = sequence

    def show(self, through: int) -> None:
        """Records that a reader was shown the messages up to `through`."""
        if through > self.shown_through:
            self.shown_through = through

    def hide_new(self) -> None:
        """Hides from readers all messages beyond those already shown."""
        self.show_until = self.shown_through

    def show_all(self) -> None:
        """Lifts the limit of `hide_new`."""
        self.show_until = -1

    def stable_end(self, durable_through: int) -> int:
        """Returns the last sequence that may be shown, if those up to `durable_through` are durable."""
        return self.show_until if 0 <= self.show_until < durable_through else durable_through

    def is_shown(self, sequence: int) -> bool:
        """Returns true for a message that a reader was shown and has not acknowledged."""
        return (
            len(self.leases) > 0 and self.acked_through < sequence and sequence <= self.shown_through
        )

    def add_lost(self, sequence: int, why: str) -> None:
        """Records that a shown message was removed without `ack_through`; neighbouring ranges are joined."""
        lost = self.lost
        if lost and lost[-1][1] == sequence - 1 and lost[-1][2] == why:
            lost[-1] = (lost[-1][0], sequence, why)
            return
        if len(lost) >= LOST_RANGES_MAX:
            lost[:2] = [(lost[0][0], lost[1][1], "messages in between, for several reasons")]
        lost.append((sequence, sequence, why))

    def add_lost_range(self, start: int, end: int, why: str) -> None:
        """Records once that the messages from `start` to `end` are lost."""
        if (start, end, why) not in self.lost:
            self.lost.append((start, end, why))
