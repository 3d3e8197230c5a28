"""The recovery of in-doubt distributed transactions from their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal.message_record import decode_message_record
from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.queue.paging.recovery import out_of_tail, pull
from atalanta.kernel.queue.reference import READY, Reference
from atalanta.kernel.routing.router import Route
from atalanta.kernel.transactions.xa import PREPARED, Branch, hold
from atalanta.message.encoding.buffer import Reader

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker


def restore(broker: Broker, now: int, payload: bytes, lsn: int) -> None:
    """Restores a branch that was in doubt at the crash, after its queues and messages."""
    reader = Reader(payload)
    branch = Branch(reader.blob("xa.xid"), reader.int64("xa.created"), -1)
    branch.state = PREPARED
    branch.lsn = lsn
    branch.stored_bytes = len(payload)
    for _ in range(reader.count("xa.messages", 4)):
        stored = decode_message_record(reader.blob("xa.message"))
        if stored.file >= 0:
            body = broker.large.restored(stored.file, stored.file_bytes)
            if body is None:
                broker.large.damaged(
                    stored.file, stored.file_bytes, stored.message.id, "a transaction in doubt"
                )
                continue
            broker.large.keep_open(body)
            stored.message.large = body
        plan = Plan(stored.message)
        plan.duplicates = stored.duplicates
        for found in stored.routes:
            queue = broker.queue_registry.by_id.get(found.queue_id)
            if queue is not None:
                plan.routes.append(Route(queue, found.route_to))
        branch.plans.append(plan)
    for _ in range(reader.count("xa.acknowledged", 20)):
        queue_id = reader.int64("xa.queue")
        message_id = reader.int64("xa.acknowledged_message")
        count = reader.int32("xa.delivery_count")
        _hold_back(broker, now, branch, queue_id, message_id, count)
    hold(branch)
    broker.branches.by_xid[branch.xid] = branch
    broker.branches.prepared += 1
    broker.branches.stored_bytes += branch.stored_bytes


def _hold_back(
    broker: Broker, now: int, branch: Branch, queue_id: int, message_id: int, delivery_count: int
) -> None:
    """Holds back a message that the branch acknowledged, until the outcome of the branch is known."""
    found: list[Reference] = []
    queue = broker.queue_registry.by_id.get(queue_id)
    if queue is not None and queue.spec.last_value_key is not None:
        # An older last value in a page file would count as the newest after the branch has ended: all pages are read.
        while queue.paged is not None and broker.paging.bring(now, queue):
            pass
    message = broker.store.messages.get(message_id)
    if message is not None:
        found = [
            each
            for each in broker.store.references_of(message)
            if each.queue.id == queue_id
        ]
    if not found and queue is not None:
        pulled = pull(broker.paging, now, queue, message_id)
        if pulled is not None:
            found.append(pulled)
    for reference in found:
        if reference.state == READY:
            out_of_tail(broker.paging, reference)
            reference.queue.reserve(reference, delivery_count)
            branch.transaction.acknowledged.append(reference)
