"""The recovery of in-doubt distributed transactions from their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal.message_record import decode_message_record
from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.kernel.queue.paging.recovery import out_of_tail, pull
from atalanta.kernel.queue.reference import READY, SCHEDULED, Reference
from atalanta.kernel.routing.router import Route, join_stored
from atalanta.kernel.transactions.xa import XaBranch
from atalanta.kernel.transactions.xa_records import decode_user
from atalanta.message.encoding.buffer import Reader

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.transactions.xa import Branches


def restore(
    branches: Branches, queues: dict[int, Queue], now: int, payload: bytes, lsn: int
) -> None:
    """Restores a branch that was in doubt at the crash, after its queues (by id) and messages."""
    large = branches.store.large
    reader = Reader(payload)
    branch = XaBranch(reader.blob("xa.xid"), reader.int64("xa.created"), -1, None)
    branch.lsn = lsn
    for _ in range(reader.count("xa.messages", 4)):
        stored = decode_message_record(reader.blob("xa.message"))
        if stored.file >= 0:
            body = large.restored(stored.file, stored.file_bytes, stored.file_crc)
            if body is None:
                large.damaged(
                    stored.file, stored.file_bytes, stored.message.id, "a transaction in doubt"
                )
                continue
            large.keep_open(body)
            stored.message.large = body
        plan = RoutingPlan(stored.message)
        plan.duplicates = stored.duplicates
        for found in join_stored(stored.routes):
            queue = queues.get(found.queue_id)
            if queue is not None:
                plan.routes.append(Route(queue, found.route_to))
        branch.plans.append(plan)
    for _ in range(reader.count("xa.acknowledged", 20)):
        known = queues.get(reader.int64("xa.queue"))
        message_id = reader.int64("xa.acknowledged_message")
        count = reader.int32("xa.delivery_count")
        if known is not None:
            _hold_back(branches.store, now, branch, known, message_id, count)
    branch.user = decode_user(reader)
    branches.add_prepared(branch, len(payload))


def _hold_back(
    store: MessageStore,
    now: int,
    branch: XaBranch,
    queue: Queue,
    message_id: int,
    delivery_count: int,
) -> None:
    """Holds back a message that the branch acknowledged, until the outcome of the branch is known."""
    found: list[Reference] = []
    paging = store.paging
    if queue.spec.last_value_key is not None:
        # An older last value in a page file would count as the newest after the branch has ended: all pages are read.
        while queue.paged is not None and paging.read_next(now, queue):
            pass
    message = store.messages.get(message_id)
    if message is not None:
        found = [each for each in store.references_of(message) if each.queue is queue]
    if not found:
        pulled = pull(paging, now, queue, message_id)
        if pulled is not None:
            found.append(pulled)
    for reference in found:
        if reference.state == SCHEDULED and reference.sequence != 0:
            # It had been delivered: by a clock that was set back since, its time is to come once more.
            store.scheduled.remove(reference)
            reference.queue.count_scheduled(reference, -1)
            reference.state = READY
            reference.queue.give_back(reference)
        if reference.state == READY:
            out_of_tail(paging, reference)
            reference.queue.reserve(reference, delivery_count)
            branch.transaction.acknowledged.append(reference)
