"""The end of a transaction whose client delivers again by itself after a rollback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.transactions.kept_deliveries import keep_delivered
from atalanta.kernel.transactions.owner import TransactionOwner

if TYPE_CHECKING:
    from atalanta.kernel.transactions.transaction import SessionTransaction
    from atalanta.wire.openwire.server.sessions.session import OpenWireSession
    from atalanta.wire.openwire.server.sessions.subscription import Delivery, Subscription


class TransactionEnd(TransactionOwner):
    """The owner of a transaction that ends. `deliveries` are those that it acknowledges, each with its consumer."""

    def __init__(self, session: OpenWireSession, deliveries: list[tuple[Subscription, Delivery]]) -> None:
        super().__init__(session.kernel.name, False, False)
        self.session = session
        self.deliveries = deliveries

    def end_transaction(self, transaction: SessionTransaction) -> None:
        """Ends a transaction that the kernel's session has declared."""
        self.session.kernel.end_transaction(transaction)

    def roll_back(self, now: int, transaction: SessionTransaction, last_as_delivered: bool) -> None:
        """Drops the sends; acknowledged messages stay with their consumers, those of closed ones return to the queue.
        """
        self.end_transaction(transaction)
        self.keep(transaction)
        self.session.kernel.services.redelivery.redeliver(now, transaction.take_acknowledged(), True)

    def keep(self, transaction: SessionTransaction) -> None:
        """Returns the acknowledged messages of a transaction to the consumers that are open."""
        kept = {id(reference) for reference in keep_delivered(self.session.kernel, transaction)}
        found: dict[int, tuple[Subscription, list[Delivery]]] = {}
        for subscription, delivery in self.deliveries:
            if id(delivery.reference) in kept:
                found.setdefault(id(subscription), (subscription, []))[1].append(delivery)
        for subscription, deliveries in found.values():
            subscription.hold_again(deliveries)
            self.session.refill(subscription)
