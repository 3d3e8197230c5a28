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
    from atalanta.kernel.transactions.transaction import Transaction


class Commits:
    """Commits transactions."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher
        self.plans = publisher.plans
        self.store = publisher.store

    def commit(
        self,
        owner: TransactionOwner,
        now: int,
        transaction: Transaction,
        endpoint: Reply,
        token: int,
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
                plans = self.publisher.prepare_all(now, transaction.messages, endpoint.takes_notices())
            except Undecided:
                raise
            except BrokerError as refused:
                error = refused
        self.store.command.begin_change()
        if error is not None and error.code == DUPLICATE_ID:
            # The sender takes "duplicate" for "done": it hears that when the first copy is durable.
            owner.roll_back(now, transaction, False)
            self.store.refuse_when_durable(self.store.journal.last, endpoint, token, error)
            return
        if error is not None:
            owner.roll_back(now, transaction, False)
            raise error
        owner.end_transaction(transaction)
        self._write(transaction, plans, endpoint, token)

    def _write(
        self, transaction: Transaction, plans: list[Plan], endpoint: Reply, token: int
    ) -> None:
        """Appends the record."""
        batch = records.Batch()
        references: list[Reference] = []
        for plan in plans:
            references.extend(self.plans.add(plan, batch))
        self.store.finish(transaction.acknowledged, batch)
        self.plans.append(batch, plans, references, endpoint, token)
