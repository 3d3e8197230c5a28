"""The sends of transactions: messages that wait in memory for their commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from atalanta.kernel.publish.duplicate_detection import repeat_error
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.registry.duplicate_spaces import application_id
from atalanta.kernel.transactions.transaction import TRANSACTION_BYTES_MAX
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.memory.full_address import FullAddresses
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.registry.duplicate_caches import DuplicateCaches
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.security.security import Identity
    from atalanta.kernel.transactions.transaction import SessionTransaction
    from atalanta.kernel.transactions.xa import Branches
    from atalanta.message.message import Message


class TransactionSends:
    """Adds messages to transactions, within the limits of memory.

    `held_bytes` returns the bytes that local transactions keep in memory.
    """

    def __init__(
        self,
        full_addresses: FullAddresses,
        caches: DuplicateCaches,
        branches: Branches,
        held_bytes: Callable[[], int],
        trace: Trace,
    ) -> None:
        self.full_addresses = full_addresses
        self.memory = full_addresses.memory
        self.caches = caches
        self.branches = branches
        self.held_bytes: Callable[[], int] = held_bytes
        self.trace = trace

    def add(
        self,
        identity: Identity,
        transaction: SessionTransaction,
        address: Address | None,
        message: Message,
    ) -> bool:
        """Adds the message; returns False if a full address drops it. BrokerError ADDRESS_FULL if it fails senders.

        `address`: if the caller knows it. After a repeated duplicate id or too many bytes the transaction cannot be
        committed.
        """
        if not identity.cluster and self.full_addresses.drops_in_transaction(
            transaction, address, message
        ):
            return False
        self.branches.store.command.begin_change()
        duplicate_id, own = message.sent_id, message.duplicate_id
        if duplicate_id is not None or (own is not None and not message.has_property(BRIDGE_DUPLICATE)):
            name = split_fqqn(message.address)[0]
            if duplicate_id is None:
                assert own is not None
                duplicate_id = application_id(name, own)
            cache = self.caches.cache_of(name)
            key = (name, duplicate_id)
            if cache.first_lsn_of(duplicate_id) >= 0 or key in transaction.duplicate_ids:
                transaction.rollback_only = repeat_error(message)
            transaction.duplicate_ids[key] = True
        transaction.add_send(message)
        self.memory.uncommitted_bytes += message.size
        if self.memory.uncommitted_bytes > TRANSACTION_BYTES_MAX:
            self._limit_uncommitted(identity, transaction)
        return True

    def _limit_uncommitted(self, identity: Identity, transaction: SessionTransaction) -> None:
        """Limits what all transactions hold to global-max-size, or to what one transaction may hold, if that is more.

        Artemis counts uncommitted messages in their address. With BLOCK a sender may then wait for memory that only its
        own commit would free. Here the transaction that exceeds the limit is refused.
        """
        memory = self.memory
        limit = max(memory.limit_bytes, TRANSACTION_BYTES_MAX)
        if memory.uncommitted_bytes <= limit:
            return
        held = self.held_bytes() + self.branches.held_bytes()
        if held > limit and not identity.cluster:
            held -= transaction.held_bytes()
            transaction.fail(f"transactions hold more than {limit} bytes that are not committed")
            self.trace.event("uncommitted_refused", {"user": identity.user, "limit": limit})
        memory.uncommitted_bytes = held
