"""The metrics of reader groups (Spark queries): lag, acknowledged messages, and the lease, by queue and group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from atalanta.management.metrics_text import escape, head

if TYPE_CHECKING:
    from atalanta.kernel.log.lease import Lease
    from atalanta.kernel.queue.queue import Queue

PREFIX: Final = "atalanta_"
ReaderFigure = tuple[str, str, str, Callable[["Queue", "Lease", int], float]]

# Name, meaning, type; the last argument is the time of the broker in ns.
READER_FIGURES: Final[list[ReaderFigure]] = [
    ("reader_lag_messages", "messages of the queue that the group has not acknowledged", "gauge",
     lambda queue, lease, now: queue.message_count),
    ("reader_acknowledged_messages_total", "messages acknowledged since the start", "counter",
     lambda queue, lease, now: queue.acknowledged),
    ("reader_acknowledged_sequence", "everything up to this sequence is acknowledged", "gauge",
     lambda queue, lease, now: queue.log.acked_through),
    ("reader_retained_messages", "acknowledged messages that are kept for a replay", "gauge",
     lambda queue, lease, now: 0 if queue.log.retained is None else queue.log.retained.messages()),
    ("reader_retained_bytes", "the bytes of these messages", "gauge",
     lambda queue, lease, now: 0 if queue.log.retained is None else queue.log.retained.total_bytes()),
    ("reader_lease_epoch", "grows by one each time that a query takes the group over", "gauge",
     lambda queue, lease, now: lease.epoch),
    ("reader_lease_seconds", "the rest of the lease, 0 once it has ended", "gauge",
     lambda queue, lease, now: lease_seconds(lease, now)),
]  # fmt: skip


def reader_figures(queues: list[tuple[Queue, str]], now: int) -> Iterator[str]:
    """Yields the figures of every group that has ever leased one of the queues; `now` in ns.

    The label `queue` is that of the queue's other metrics, `group` is added to it.
    """
    readers: list[tuple[Queue, Lease, str]] = []
    for queue, label in queues:
        if not queue.deleted:
            for lease in queue.log.leases.values():
                readers.append((queue, lease, f'{label[:-1]},group="{escape(lease.group)}"}}'))
    if not readers:
        return
    for figure, why, kind, of_reader in READER_FIGURES:
        yield head(figure, why, kind, PREFIX) + "".join(
            f"{PREFIX}{figure}{label} {of_reader(queue, lease, now):.15g}\n"
            for queue, lease, label in readers
        )


def lease_seconds(lease: Lease, now: int) -> float:
    return max(0, lease.until - now) / 1e9 if lease.active else 0
