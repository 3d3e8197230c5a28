"""Full addresses: credits of their senders wait, and messages are dropped or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ADDRESS_FULL, BrokerError
from atalanta.kernel.memory.address_memory import DROP, FAIL, Account
from atalanta.kernel.memory.memory import MESSAGE_MEMORY_BYTES
from atalanta.kernel.transactions.transaction import TRANSACTION_BYTES_MAX
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.transactions.transaction import Transaction
    from atalanta.message.message import Message


def request_credits(session: Session, address: str, amount: int) -> None:
    """Grants credits when memory allows (ServerSessionImpl.requestProducerCredits), at once for internal addresses."""
    broker = session.broker
    name = split_fqqn(address)[0]
    known = broker.addresses.get(name)
    if known is not None and known.internal:
        session.endpoint.credits(address, amount)
        return
    if known is not None:
        account = known.account
    else:
        account = Account()
        account.apply(broker.settings.match(name))
    broker.memory.request(session.endpoint, account, address, amount, session.identity.cluster)


def refused(session: Session, message: Message, token: int) -> bool:
    """Returns True if a full address drops the message; BrokerError ADDRESS_FULL if it fails senders.

    Called while any address refuses. A transaction with a failed message cannot be committed. A peer's message is never
    failed: its bridge waits for credits instead.
    """
    broker = session.broker
    name = split_fqqn(message.address)[0]
    address = broker.addresses.get(name)
    if address is None or not address.account.refusing:
        return False
    account = address.account
    policy = broker.memory.refusal(account)
    if policy == FAIL and not session.identity.cluster:
        error = BrokerError(ADDRESS_FULL, f"address {name} is full")
        if not session.auto_commit_sends:
            session.transaction.rollback_only = error
        raise error
    if policy != DROP:
        return False
    _dropped(session, account, name)
    session.endpoint.done(token)
    return True


def refused_in_transaction(session: Session, address: Address | None, message: Message) -> bool:
    """Checks like `refused`, with the earlier sends of the transaction counted as if they were in the address.

    `address`: if the caller knows it.
    """
    broker = session.broker
    if address is None:
        address = broker.addresses.get(split_fqqn(message.address)[0])
        if address is None:
            return False
    account = address.account
    if account.policy < FAIL or session.identity.cluster:
        return False
    transaction = session.transaction
    if transaction.pressing is None:
        transaction.pressing = {}
    taken, count = transaction.pressing.get(address.name, (0, 0))
    memory = broker.memory
    if (
        account.bytes + taken >= account.limit_bytes
        or account.messages + count >= account.limit_messages
        or memory.used_bytes + transaction.bytes >= memory.limit_bytes
        or memory.used_messages + len(transaction.messages) >= memory.limit_messages
    ):
        if account.policy == FAIL:
            error = BrokerError(ADDRESS_FULL, f"address {address.name} is full")
            transaction.rollback_only = error
            raise error
        _dropped(session, account, address.name)
        return True
    transaction.pressing[address.name] = (
        taken + message.size + MESSAGE_MEMORY_BYTES,
        count + 1,
    )
    return False


def limit_uncommitted(session: Session, transaction: Transaction) -> None:
    """Limits what all transactions hold to global-max-size, or to what one transaction may hold, if that is more.

    Artemis counts uncommitted messages in their address. With BLOCK a sender may then wait for memory that only its own
    commit would free. Here the transaction that exceeds the limit is refused.
    """
    broker = session.broker
    memory = broker.memory
    limit = max(memory.limit_bytes, TRANSACTION_BYTES_MAX)
    if memory.uncommitted_bytes <= limit:
        return
    held = 0
    for each in broker.clients.sessions():
        if each.branch is None:
            for one in each.open_transactions():
                held += one.held_bytes()
    for branch in broker.branches.by_xid.values():
        held += branch.transaction.held_bytes()
    if held > limit and not session.identity.cluster:
        held -= transaction.held_bytes()
        transaction.fail(f"transactions hold more than {limit} bytes that are not committed")
        broker.trace.event("uncommitted_refused", {"user": session.identity.user, "limit": limit})
    memory.uncommitted_bytes = held


def _dropped(session: Session, account: Account, name: str) -> None:
    account.dropped += 1
    session.broker.trace.count("messages_dropped_address_full")
    if account.dropped == 1:
        session.broker.trace.event("address_drops_messages", {"address": name})
