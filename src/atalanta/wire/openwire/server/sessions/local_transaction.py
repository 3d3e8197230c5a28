"""A local transaction of an OpenWire client."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.transactions.transaction import SessionTransaction
    from atalanta.wire.openwire.server.sessions.subscription import Delivery, Subscription


class LocalTransaction:
    """A local transaction. `deliveries` are those that it acknowledges, each with its consumer."""

    def __init__(self, transaction: SessionTransaction) -> None:
        self.transaction = transaction
        self.deliveries: list[tuple[Subscription, Delivery]] = []
