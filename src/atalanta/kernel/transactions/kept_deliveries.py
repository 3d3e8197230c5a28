"""The rollback for protocols whose clients deliver again by themselves (OpenWire).

Acknowledged messages stay delivered to their consumers, and only those of closed consumers return to their queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.reference import DELIVERING, Reference

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.transactions.transaction import SessionTransaction


def keep_delivered(session: Session, transaction: SessionTransaction) -> list[Reference]:
    """Gives the acknowledged messages of a transaction back to their open consumers; returns these messages.

    Each counts as delivered once more. The others stay in the transaction, whose rollback follows.
    """
    kept: list[Reference] = []
    store = session.services.store
    for reference in transaction.take_acknowledged():
        consumer = reference.consumer
        if consumer is None or consumer.closed or reference.state != DELIVERING or reference.queue.deleted:
            transaction.add_acknowledged(reference)
            continue
        reference.delivery_count += 1
        consumer.unacknowledged.add(reference)
        if reference.durable and not store.memory.disk_exhausted:
            store.store_delivery_count(reference, 0)
        kept.append(reference)
    return kept
