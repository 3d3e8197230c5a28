"""The part of a queue that others may have: the state of its log views, and what was sent to another node.

A log view has leases, the sequences acknowledged and shown, and the ranges a reader lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records

if TYPE_CHECKING:
    from atalanta.kernel.log.lease import ReaderLease
    from atalanta.kernel.queue.paging.retained_ranges import RetainedRanges

PAGE_FILE_DAMAGED: Final = "the page file is damaged"  # the reason of a lost range
LOST_RANGES_MAX: Final = 1_000  # of a queue; then the two oldest become one, with all that lies between them


class LogState:
    """The part of a queue that log views use (kernel/log/log_views.py), and links to other nodes.

    `sent_through` is of a store-and-forward queue: the other node may have the messages up to it; -1: another queue.
    Everything up to `acked_through` is acknowledged. A reader has been shown messages up to `shown_through`. Messages
    behind `show_until` are not shown; -1: no such limit. `lost` holds (first, last, reason). `retained`: acknowledged
    messages that can be read again; None without a retention.
    """

    def __init__(self) -> None:
        self.acked_through: int = 0
        self.shown_through: int = 0
        self.sent_through: int = -1
        self.show_until: int = -1
        self.leases: dict[str, ReaderLease] = {}
        self.lost: list[tuple[int, int, str]] = []
        self.retained: RetainedRanges | None = None

    def active_lease(self) -> ReaderLease | None:
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

    def send(self, through: int) -> None:
        """Records that another node may have the messages up to `through`."""
        self.sent_through = through

    def show(self, through: int) -> None:
        """Records that a reader was shown the messages up to `through`."""
        if through > self.shown_through:
            self.shown_through = through

    def hide_new(self) -> None:
        """Hides from readers all messages beyond those already shown."""
        self.show_until = self.shown_through

    def stable_end(self, durable_through: int) -> int:
        """Returns the last sequence that may be shown, if those up to `durable_through` are durable."""
        return self.show_until if 0 <= self.show_until < durable_through else durable_through

    def is_awaited(self, sequence: int) -> bool:
        """Returns true for a message that a reader was shown and has not acknowledged; in a lease for every later one.
        """
        return (
            len(self.leases) > 0
            and self.acked_through < sequence
            and (sequence <= self.shown_through or self.active_lease() is not None)
        )

    def add_lost(self, start: int, end: int, why: str) -> None:
        """Records that the messages from `start` to `end` left without `ack_through`; neighbouring ranges are joined.
        """
        lost = self.lost
        if lost and lost[-1][1] == start - 1 and lost[-1][2] == why:
            lost[-1] = (lost[-1][0], end, why)
            return
        if len(lost) >= LOST_RANGES_MAX:
            first = min(lost[0][0], lost[1][0])  # the newer one may have the lower sequences
            last = max(lost[0][1], lost[1][1])
            lost[:2] = [(first, last, "messages in between, for several reasons")]
        lost.append((start, end, why))

    def record_lost(self, queue_id: int, start: int, end: int, why: str, batch: records.Batch) -> None:
        """Records a lost range here and in the batch; `queue_id` is that of this state's queue."""
        self.add_lost(start, end, why)
        batch.add(records.LOST, records.encode_lost(queue_id, start, end, why))

    def lost_whole(self, start: int, end: int) -> bool:
        """Returns true if one recorded range holds all sequences from `start` to `end`."""
        for first, last, _ in self.lost:
            if first <= start and end <= last:
                return True
        return False
