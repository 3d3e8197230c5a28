"""Local and distributed transactions. Their ids belong to the connection: several sessions may use one.

After a rollback the client delivers acknowledged messages again by itself: they stay with their consumers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ILLEGAL_STATE, TRANSACTION_ROLLED_BACK, BrokerError, Postponed
from atalanta.wire.openwire.commands.transactions import (
    LocalTransactionId,
    TransactionId,
    TransactionInfo,
    XATransactionId,
)
from atalanta.wire.openwire.server.requests.transaction_end import TransactionEnd
from atalanta.wire.openwire.server.requests.xa import answer_xa, fail_branch, known_branch
from atalanta.wire.openwire.server.sessions.local_transaction import LocalTransaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.message.message import Message
    from atalanta.wire.openwire.server.sessions.session import OpenWireSession
    from atalanta.wire.openwire.server.sessions.subscription import Delivery, Subscription

BEGIN: Final = 0
PREPARE: Final = 1
COMMIT_ONE_PHASE: Final = 2
COMMIT: Final = 3
ROLLBACK: Final = 4
END: Final = 7
ENDS: Final = (PREPARE, COMMIT_ONE_PHASE, COMMIT, ROLLBACK)  # what stands behind the messages of a transaction


def _found(session: OpenWireSession, transaction_id: TransactionId) -> LocalTransaction:
    """Returns an open local transaction. BrokerError for an unknown one."""
    found = session.transactions.get(transaction_id)
    if found is None:
        raise BrokerError(ILLEGAL_STATE, f"Transaction '{_shown(transaction_id)}' has not been started.")
    return found


def _shown(transaction_id: TransactionId) -> str:
    if isinstance(transaction_id, LocalTransactionId):
        connection = transaction_id.connection_id
        return f"TX:{'' if connection is None else connection.value}:{transaction_id.value}"
    return repr(transaction_id)


def fail(session: OpenWireSession, transaction_id: TransactionId | None, error: BrokerError) -> None:
    """Fails a transaction of which an operation was refused: it must not commit without it."""
    if isinstance(transaction_id, XATransactionId):
        fail_branch(session, transaction_id, error.text)
    elif transaction_id is not None and transaction_id in session.transactions:
        session.transactions[transaction_id].transaction.fail(error.text)


# -- work in a transaction ------------------------------------------------------------------------
def send_in(
    session: OpenWireSession, now: int, transaction_id: TransactionId | None, message: Message, token: int
) -> None:
    """Sends a message, in the transaction if there is one."""
    kernel = session.kernel
    if transaction_id is None:
        kernel.send(now, message, token)
    elif isinstance(transaction_id, XATransactionId):
        kernel.enter_branch(known_branch(session, transaction_id))
        try:
            kernel.send(now, message, token)
        finally:
            kernel.enter_branch(None)
    else:
        kernel.use(_found(session, transaction_id).transaction)
        try:
            kernel.send(now, message, token)
        finally:
            kernel.use(None)


def in_transaction(
    session: OpenWireSession,
    now: int,
    transaction_id: TransactionId | None,
    subscription: Subscription,
    found: list[Delivery],
) -> None:
    """Acknowledges deliveries, in the transaction if there is one."""
    kernel = session.kernel
    if transaction_id is None:
        _acknowledge(session, now, found)
    elif isinstance(transaction_id, XATransactionId):
        branch = known_branch(session, transaction_id)
        kernel.enter_branch(branch)
        try:
            _acknowledge(session, now, found)
        finally:
            kernel.enter_branch(None)
        deliveries = session.branches.setdefault(branch.xid, [])
        deliveries.extend([(subscription, delivery) for delivery in found])
    else:
        local = _found(session, transaction_id)
        kernel.use(local.transaction)
        try:
            _acknowledge(session, now, found)
        finally:
            kernel.use(None)
        local.deliveries.extend([(subscription, delivery) for delivery in found])


def _acknowledge(session: OpenWireSession, now: int, found: list[Delivery]) -> None:
    kernel = session.kernel
    for delivery in found:
        consumer = kernel.consumers.get(delivery.part.number)
        message_id = int(delivery.reference.message.id)
        if consumer is not None and message_id in consumer.unacknowledged:  # else management has moved it
            kernel.acknowledge(now, delivery.part.number, message_id, True, SILENT)


# -- TransactionInfo ------------------------------------------------------------------------------
def answer_transaction(session: OpenWireSession, now: int, info: TransactionInfo) -> None:
    """Processes TransactionInfo."""
    transaction_id = info.transaction_id
    if transaction_id is None or isinstance(transaction_id, XATransactionId):
        answer_xa(session, now, info, transaction_id)
        return
    if info.kind == BEGIN:
        if transaction_id not in session.transactions:  # else a repeat
            session.transactions[transaction_id] = LocalTransaction(session.kernel.declare())
        session.done(session.answers.token_for(info))
    elif info.kind == COMMIT_ONE_PHASE or info.kind == COMMIT:
        local = _found(session, transaction_id)
        del session.transactions[transaction_id]
        _commit(session, now, local, session.answers.token_for(info))
    elif info.kind == ROLLBACK:
        local = _found(session, transaction_id)
        del session.transactions[transaction_id]
        roll_back(session, now, local, session.answers.token_for(info))
    elif info.kind == END:
        session.done(session.answers.token_for(info))
    else:
        raise BrokerError(ILLEGAL_STATE, f"a local transaction has no step {info.kind}")


def _commit(session: OpenWireSession, now: int, local: LocalTransaction, token: int) -> None:
    """Commits. If the queue of a message group is not known yet, the input waits and this is repeated."""
    kernel = session.kernel
    failure = local.transaction.rollback_only
    if failure is not None:
        roll_back(session, now, local, SILENT)
        session.failed(token, BrokerError(TRANSACTION_ROLLED_BACK, f"the transaction is rolled back: {failure.text}"))
        return
    try:
        owner = TransactionEnd(session, local.deliveries)
        kernel.services.commits.commit(owner, now, local.transaction, session, token)
    except Postponed as postponed:
        kernel.wait(now, postponed, None, _retry(session, local, token))
    except BrokerError as error:
        session.failed(token, BrokerError(TRANSACTION_ROLLED_BACK, f"the transaction is rolled back: {error.text}"))


def _retry(session: OpenWireSession, local: LocalTransaction, token: int) -> Callable[[int], None]:
    """Returns the function that commits again."""
    return lambda now: _commit(session, now, local, token)


def roll_back(session: OpenWireSession, now: int, local: LocalTransaction, token: int) -> None:
    """Rolls back: sends are dropped, acknowledged messages stay with their consumers."""
    TransactionEnd(session, local.deliveries).roll_back(now, local.transaction, False)
    session.done(token)
