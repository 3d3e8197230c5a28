"""The recovery of a node: its broker gets back what the journal has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.broker.live_records import LiveRecords
from atalanta.kernel.broker.recovery import Recovery
from atalanta.store.errors import JournalDamaged

if TYPE_CHECKING:
    from atalanta.cluster.replication.active.replicator import Replicator
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.ports import Disk, Trace
    from atalanta.store.journal import Journal
    from atalanta.store.recovery_report import RecoveryReport


def recover(now: int, broker: Broker, journal: Journal, replicator: Replicator | None, disk: Disk) -> None:
    """Reads the journal into the broker. Raises DecodeError or JournalDamaged if the journal is not valid.

    `replicator`: of a member of a group. What it has replayed while it was passive is not read again.
    """
    seat = None if replicator is None else replicator.seat
    recovery = (None if seat is None else seat.end_preparation()) or Recovery(broker)
    live_records = LiveRecords(broker)
    try:
        if seat is None or seat.replay is None:
            report = journal.recover(recovery, live_records)
        else:
            state = seat.replay.complete(disk)
            report = state.report
            journal.take_over(state, live_records)
    except JournalDamaged as error:
        raise error.with_contents(recovery.described(error.records)) from error
    report.check_first(recovery.first_segment)
    epochs = 0
    if replicator is not None:
        replicator.begin(now)
        # What an earlier epoch did not confirm is cut, but its ids may be in files and at clients. Epochs of which
        # this journal has no block count, too.
        epochs = replicator.epoch - (report.epochs[-1][0] if report.epochs else 0)
    recovery.finish(now, epochs)
    ids = broker.reserved_ids
    ids.awaited_lsn = ids.renew()
    tell(report, len(broker.store.messages), replicator is not None, broker.trace)


def tell(report: RecoveryReport, messages: int, replicated: bool, trace: Trace) -> None:
    """Reports what was found. A follower prepares its next file under another name: it misses none."""
    if report.torn_bytes:
        trace.event("journal_tail_cut", {"at": report.torn_at, "bytes": report.torn_bytes})
    if report.expected and not replicated:
        trace.event("journal_segment_missing", {"file": report.expected})
    trace.event("journal_recovered", {"records": report.records, "messages": messages})
