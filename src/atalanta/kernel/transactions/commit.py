"""The commit of a transaction: one record with all its changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import DUPLICATE_ID, BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.publish.grouping import Undecided
from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.queue.reference import Reference

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.publish.publisher import Publisher
    from atalanta.kernel.transactions.owner import TransactionOwner
    from atalanta.kernel.transactions.sinks import Sinks
    from atalanta.kernel.transactions.transaction import Transaction


class SinkId:
    """The id of a batch of a Spark query and partition, which is committed with the batch's messages."""

    def __init__(self, query: str, batch: int, partition: int) -> None:
        self.query = query
        self.batch = batch
        self.partition = partition


class Commits:
    """Commits transactions. `sinks` are the newest batches of Spark queries."""

    def __init__(self, publisher: Publisher, sinks: Sinks) -> None:
        self.publisher = publisher
        self.plans = publisher.plans
        self.store = publisher.store
        self.sinks = sinks

    def commit(
        self,
        owner: TransactionOwner,
        now: int,
        transaction: Transaction,
        endpoint: Reply,
        token: int,
        sink: SinkId | None = None,
    ) -> None:
        """Commits; `endpoint.done(token)` when durable. DUPLICATE_ID rolls back.

        The transaction is the owner's own, or a distributed one that is committed in one phase. A BrokerError rolls
        back. After Undecided nothing has changed, and the commit is tried again.
        """
        error = transaction.rollback_only
        plans: list[Plan] = []
        if error is None and transaction.messages:
            error = self.store.memory.exhaustion()
        if error is None:
            try:
                plans = self.publisher.prepare_all(now, transaction.messages)
            except Undecided:
                raise
            except BrokerError as refused:
                error = refused
        if error is not None and error.code == DUPLICATE_ID:
            lsn = self.store.journal.last
            self.refuse_duplicate(owner, now, transaction, endpoint, token, lsn, error.text)
            return
        if error is not None:
            owner.roll_back(now, transaction, False)
            raise error
        owner.end_transaction(transaction)
        self._write(transaction, plans, endpoint, token, sink)

    def _write(
        self,
        transaction: Transaction,
        plans: list[Plan],
        endpoint: Reply,
        token: int,
        sink: SinkId | None,
    ) -> None:
        """Appends the record."""
        batch = records.Batch()
        references: list[Reference] = []
        for plan in plans:
            references.extend(self.plans.add(plan, batch))
        self.store.finish(transaction.acknowledged, batch)
        if sink is not None:
            payload = records.encode_sink(sink.query, sink.partition, sink.batch)
            batch.add(records.SINK, payload)
        lsn = self.plans.append(batch, plans, references, endpoint, token)
        if sink is not None:
            self.sinks.put(sink.query, sink.partition, sink.batch, lsn)

    def commit_sink(
        self,
        owner: TransactionOwner,
        now: int,
        transaction: Transaction,
        endpoint: Reply,
        token: int,
        sink: SinkId,
    ) -> None:
        """Commits under a sink id: DUPLICATE_ID if the batch is not newer than the last of that query and partition."""
        query = sink.query
        partition = sink.partition
        if sink.batch <= self.sinks.newest(query, partition):
            lsn = self.sinks.lsn_of(query, partition)
            why = f"batch {sink.batch} of query {query} partition {partition} was committed before"
            self.refuse_duplicate(owner, now, transaction, endpoint, token, lsn, why)
            return
        self.commit(owner, now, transaction, endpoint, token, sink)

    def refuse_duplicate(
        self,
        owner: TransactionOwner,
        now: int,
        transaction: Transaction,
        endpoint: Reply,
        token: int,
        lsn: int,
        text: str,
    ) -> None:
        """Rolls back and answers DUPLICATE_ID, but not before the record of the first copy (`lsn`) is durable."""
        owner.roll_back(now, transaction, False)
        self.store.refuse_when_durable(lsn, endpoint, token, BrokerError(DUPLICATE_ID, text))
