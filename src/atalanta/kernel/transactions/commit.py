"""The commit of a transaction: one record with all its changes.

A small transaction is committed in one event-loop iteration. A large one would keep all other clients waiting: its
messages are routed and encoded in steps, in iterations of their own, and nobody sees anything of them. In the last
step everything is appended at once. If what the messages were routed by has changed meanwhile, or a duplicate id has
arrived elsewhere, the preparation begins again; the last try does everything in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import DUPLICATE_ID, BrokerError, Postponed, Unfinished
from atalanta.kernel.journal import records
from atalanta.kernel.publish.preparation import Preparation
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.transactions.draft import Draft

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.publish.publisher import Publisher
    from atalanta.kernel.queue.delivery.plan import RoutingPlan
    from atalanta.kernel.transactions.owner import TransactionOwner
    from atalanta.kernel.transactions.transaction import SessionTransaction


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
        transaction: SessionTransaction,
        endpoint: Reply,
        token: int,
    ) -> None:
        """Commits; `endpoint.done(token)` when durable. DUPLICATE_ID rolls back.

        The transaction is the owner's own, or a distributed one that is committed in one phase. A BrokerError rolls
        back. After Postponed nothing has changed, and the commit is tried again.
        """
        error = transaction.rollback_only
        plans: list[RoutingPlan] = []
        if error is None and transaction.messages:
            error = self.publisher.exhaustion(transaction.messages)
            if error is None:
                try:
                    plans = self._prepared(now, transaction, endpoint.takes_notices())
                except Postponed:
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

    def _prepared(self, now: int, transaction: SessionTransaction, strict: bool) -> list[RoutingPlan]:
        """Returns the plans of the transaction's messages; a large one has its complete draft, too."""
        if len(transaction.messages) <= self.publisher.few_max and transaction.preparation is None:
            return self.publisher.prepare_all(now, transaction.messages, strict)
        preparation = prepared(self.publisher, now, transaction, strict)
        work_max = self.publisher.step_work_max
        if preparation.work > work_max:
            if transaction.draft is None:
                transaction.draft = Draft(self.plans, preparation.plans, work_max)
            transaction.draft.advance(preparation.in_steps())
            check_current(transaction, preparation)
        return preparation.plans

    def _write(
        self, transaction: SessionTransaction, plans: list[RoutingPlan], endpoint: Reply, token: int
    ) -> None:
        """Appends the record."""
        draft = transaction.draft
        references: list[Reference] = []
        if draft is not None:
            batch = draft.batch
            references = draft.enter()
        else:
            batch = records.Batch()
            for plan in plans:
                references.extend(self.plans.add(plan, batch))
        self.store.finish(transaction.acknowledged, batch)
        self.plans.append(batch, plans, references, endpoint, token)


def prepared(publisher: Publisher, now: int, transaction: SessionTransaction, strict: bool) -> Preparation:
    """Returns the complete preparation of the transaction's messages; Postponed and errors as `Preparation.advance`."""
    preparation = transaction.preparation
    if preparation is None:
        preparation = Preparation(publisher, transaction.messages, strict)
        transaction.preparation = preparation
    preparation.advance(now)
    return preparation


def check_current(transaction: SessionTransaction, preparation: Preparation) -> None:
    """Raises Unfinished if the preparation is outdated: it begins again."""
    if not preparation.is_current():
        preparation.begin_again()
        transaction.draft = None
        transaction.prepared = None
        raise Unfinished
