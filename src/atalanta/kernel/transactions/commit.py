"""The commit of a transaction: one record with all its changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import DUPLICATE_ID, BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.publish.duplicate_detection import headers_of_links, put_back
from atalanta.kernel.publish.grouping import Undecided
from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.queue.reference import Reference

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.transactions.transaction import Transaction


def commit_transaction(
    session: Session,
    now: int,
    transaction: Transaction,
    endpoint: Reply,
    token: int,
    query: str,
    sink_batch: int,
    partition: int,
) -> None:
    """Commits; `endpoint.done(token)` when durable. DUPLICATE_ID rolls back. The sink id counts if there is a `query`.

    The transaction is the session's own, or a distributed one that is committed in one phase. A BrokerError rolls back.
    After Undecided nothing has changed, and the commit is tried again.
    """
    broker = session.broker
    error = transaction.rollback_only
    if error is not None:
        if error.code == DUPLICATE_ID:
            refuse_duplicate(
                session, now, transaction, endpoint, token, broker.journal.last, error.text
            )
            return
        session.roll_back(now, transaction, False)
        raise error
    plans: list[Plan] = []
    undecided: list[str] = []
    headers = headers_of_links(transaction.messages) if broker.router.grouping is not None else []
    for message in transaction.messages:
        try:
            plan = broker.publisher.prepare(now, message)
        except Undecided as waiting:
            undecided.extend(waiting.ids)
            continue
        except BrokerError:
            session.roll_back(now, transaction, False)
            raise
        if plan.repeats_lsn >= 0:
            why = f"duplicate message detected on {message.address}"
            refuse_duplicate(session, now, transaction, endpoint, token, plan.repeats_lsn, why)
            return
        plans.append(plan)
    if undecided:
        put_back(headers)
        raise Undecided(undecided)
    session.begin_after(transaction)
    batch = records.Batch()
    references: list[Reference] = []
    for plan in plans:
        references.extend(broker.plans.add(plan, batch))
    broker.store.finish(transaction.acknowledged, batch)
    if query:
        batch.add(records.SINK, records.encode_sink(query, partition, sink_batch))
    lsn = broker.plans.append(batch, plans, references, endpoint, token)
    if query:
        broker.sinks.put(query, partition, sink_batch, lsn)


def refuse_duplicate(
    session: Session,
    now: int,
    transaction: Transaction,
    endpoint: Reply,
    token: int,
    lsn: int,
    text: str,
) -> None:
    """Rolls back and answers DUPLICATE_ID, but not before the record of the first copy (`lsn`) is durable."""
    session.roll_back(now, transaction, False)
    session.broker.store.refuse_when_durable(lsn, endpoint, token, BrokerError(DUPLICATE_ID, text))
