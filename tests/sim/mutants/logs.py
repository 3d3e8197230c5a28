"""Queues that are read as logs."""

from __future__ import annotations

from atalanta.kernel.log import log_views
from atalanta.kernel.log.lease import ReaderLease
from atalanta.kernel.queue.queue import Queue
from atalanta.sim.clients.client import then
from atalanta.sim.clients.readers import LogReader
from tests.sim.mutants.patching import Patch


def acknowledged_through_without_fencing(patch: Patch) -> None:
    def anybody(queue: Queue, group: str, epoch: int) -> ReaderLease:
        return queue.log.leases[group]

    patch.setattr(log_views, "check_epoch", anybody)


def epoch_not_durable(patch: Patch) -> None:
    record = ReaderLease.record

    def older(held: ReaderLease, queue_id: int) -> bytes:
        return record(ReaderLease(held.group, 1, held.owner, held.ttl_ns), queue_id)

    patch.setattr(ReaderLease, "record", older)


def acknowledged_before_the_commit(patch: Patch) -> None:
    """The reader acknowledges a batch when it has read it, and may die before it commits it."""
    commit = LogReader._commit

    def hasty(self: LogReader) -> None:
        assert self.planned is not None
        reply = self._acknowledge(self.epoch, self.planned[1])
        then(reply, lambda reply: commit(self) if reply.error is None else None)

    patch.setattr(LogReader, "_commit", hasty)
