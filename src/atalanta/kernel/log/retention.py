"""Retention: acknowledged messages of a log view stay for a time, or up to a size, and can be read again.

A VALUE record per queue holds the limits and the retained ranges; the ACK_THROUGH record is the usual one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, RANGE_LOST, BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.observer import Observer
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from atalanta.kernel.queue.paging.retained_messages import RetainedMessages, retained_of

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.paging.paging import Paging
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

KEY: Final = "retained."
# A queue has at most about this many ranges for its age, and twice as many for its size.
RANGES: Final = 64
BYTES_LEAST: Final = 1 << 20  # smaller ranges are joined
UNLIMITED: Final = 1 << 62
NOT_KEPT: Final = "not retained: a prepared branch held it"


class Retention(Observer):
    """The retention of all queues."""

    def __init__(self, plans: PlanWriter, values: NamedValues) -> None:
        self.plans = plans
        self.values = values
        self.store = plans.store

    def choose(self, queue: Queue, age_ms: int, bytes_max: int) -> None:
        """Sets the limits of the queue; 0 is none, and without any all retained messages are released.

        BrokerError if the node has no page files.
        """
        retained = retained_of(queue)
        if not self.store.paging.on:
            raise BrokerError(ILLEGAL_STATE, f"queue {queue.name}: a retention needs page files")
        if age_ms == 0 and bytes_max == 0:
            if retained is not None:
                retained.release(queue.log.acked_through)
                queue.log.retain(None)
            return
        if retained is None:
            retained = RetainedMessages(self.store.paging, queue)
            queue.log.retain(retained)
        retained.limit(age_ms, bytes_max)

    def replay(self, queue: Queue, group: str, sequence: int) -> None:
        """Sets the reader of a group back to a sequence. BrokerError RANGE_LOST if that is not retained."""
        retained = queue.log.retained
        released = queue.log.released_through()
        if sequence < released:
            text = f"queue {queue.name} retains messages behind {released} only: it cannot be read from {sequence}"
            raise BrokerError(RANGE_LOST, text)
        if retained is not None:
            retained.replay(group, sequence)

    def lease(self, queue: Queue, group: str) -> None:
        """Ends the replay of another group: the queue is leased to this one."""
        retained = queue.log.retained
        if retained is not None and retained.replay_group != group:
            retained.end_replay()

    def keep(self, retained: RetainedMessages, reference: Reference, batch: records.Batch) -> None:
        """Keeps a message of the queue's list that was acknowledged; the batch gets LOST if that is impossible."""
        queue = reference.queue
        if not isinstance(reference, PagedReference) and not reference.durable:
            self.store.drop_from_queue(reference)
        elif retained.follows(reference):
            self.store.take_from_queue(reference)
            retained.keep(reference)
        else:
            queue.log.record_lost(queue.id, reference.sequence, reference.sequence, NOT_KEPT, batch)
            self.store.drop_from_queue(reference)

    def close_range(self, queue: Queue) -> None:
        """Ends a range that was acknowledged now, and releases what is above the limits."""
        retained = retained_of(queue)
        if retained is None:
            return
        step_ms = max(1_000, retained.age_ms // RANGES)
        now_ms = self.store.now // 1_000_000
        at_ms = (now_ms + step_ms - 1) // step_ms * step_ms
        merged = max(BYTES_LEAST, retained.bytes_max // RANGES) if retained.bytes_max > 0 else UNLIMITED
        retained.close_range(at_ms, queue.log.acked_through, merged)
        retained.end_replay()
        self._release(self.store.now, queue, retained)

    def _release(self, now: int, queue: Queue, retained: RetainedMessages) -> bool:
        """Releases what is above the limits, but nothing that a replay under way has not acknowledged."""
        lease = queue.active_lease()
        limit = queue.log.acked_through
        if retained.replay_from >= 0 and lease is not None and lease.group == retained.replay_group:
            limit = retained.replay_from
        end = retained.due(now // 1_000_000, limit)
        if end == retained.released_through:
            return False
        retained.release(end)
        return True

    def release_due(self, now: int, queues: dict[str, Queue]) -> bool:
        """Releases messages whose time is over; returns true while any queue retains messages for a time."""
        any_retained = False
        for queue in queues.values():
            retained = retained_of(queue)
            if retained is not None and retained.age_ms > 0:
                if self._release(now, queue, retained):
                    self.append(queue, records.Batch(), None, 0)
                any_retained = any_retained or len(retained.ranges) > 0
        return any_retained

    # -- the journal ----------------------------------------------------------------------------
    def append(self, queue: Queue, batch: records.Batch, endpoint: Reply | None, token: int) -> None:
        """Appends the batch with the state of the queue's retention; `endpoint.done(token)` when durable."""
        retained = queue.log.retained
        key = f"{KEY}{queue.id}"
        value = None if retained is None else retained.encode()
        changed = value is not None or self.values.has(key)
        if changed:
            batch.add(records.VALUE, records.encode_value(key, value))
        lsn = self.plans.append(batch, [], [], endpoint, token)
        if changed:
            self.values.restore(key, value, lsn)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        retained = retained_of(queue)
        if retained is not None:
            retained.release(queue.log.acked_through)
            queue.log.retain(None)
            self.values.forget(f"{KEY}{queue.id}")


def restore(values: NamedValues, paging: Paging, queues: dict[int, Queue]) -> None:
    """Restores the retention of all queues, at recovery before their messages. DecodeError names a bad field."""
    for key in values.keys(KEY):
        queue = queues.get(int(key[len(KEY) :]))
        data = values.get(key)
        if queue is not None and data is not None and paging.on:
            retained = RetainedMessages(paging, queue)
            retained.restore(data, queue.log.acked_through)
            queue.log.retain(retained)
