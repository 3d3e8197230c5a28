"""Transactions: BEGIN, COMMIT and ABORT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError, Postponed
from atalanta.kernel.transactions.kept_deliveries import keep_delivered
from atalanta.wire.stomp.credits import give_credits
from atalanta.wire.stomp.session import StompTransaction
from atalanta.wire.waiting_requests import WaitingRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.kernel.transactions.transaction import SessionTransaction
    from atalanta.wire.stomp.frame import Frame
    from atalanta.wire.stomp.session import StompSession

ADDRESS_DELAY: Final = -1  # of the next attempt, as the address settings have it


class WaitingEnd(WaitingRequest):
    """The end of a transaction with a message that waits for room."""

    def __init__(self, session: StompSession, ended: StompTransaction, token: int, commits: bool) -> None:
        super().__init__("", 0, "")
        self.session = session
        self.ended = ended
        self.token = token
        self.commits = commits

    def proceed(self, now: int) -> bool:
        try:
            if self.commits:
                _discharge(self.session, now, self.ended, self.token)
            else:
                _roll_back(self.session, now, self.ended, self.token)
        except BrokerError as error:
            self.session.failed(self.token, error)
        return True


def transaction_of(session: StompSession, frame: Frame) -> StompTransaction | None:
    """Returns the transaction of the frame, None without the header. BrokerError for an unknown one."""
    name = frame.get("transaction")
    if name is None:
        return None
    found = session.transactions.get(name)
    if found is None:
        raise BrokerError(ILLEGAL_STATE, f"there is no transaction {name[:40]!r}")
    return found


def begin(session: StompSession, frame: Frame) -> None:
    """Processes BEGIN."""
    name = frame.required("transaction")
    if name in session.transactions:
        raise BrokerError(ILLEGAL_STATE, f"there is a transaction {name[:40]!r} already")
    session.transactions[name] = StompTransaction(session.kernel.declare(), session.classic)
    session.done(session.token_for(frame.get("receipt")))


def _ended(session: StompSession, frame: Frame) -> StompTransaction:
    """Returns the transaction that COMMIT or ABORT ends."""
    name = frame.required("transaction")
    found = transaction_of(session, frame)
    assert found is not None
    del session.transactions[name]
    return found


def commit(session: StompSession, now: int, frame: Frame) -> None:
    """Processes COMMIT, behind the messages of the transaction."""
    token = session.token_for(frame.get("receipt"))
    ended = _ended(session, frame)
    if ended.lane in session.waiting.lanes:
        session.set_aside(now, ended.lane, WaitingEnd(session, ended, token, True))
    else:
        _discharge(session, now, ended, token)


def _discharge(session: StompSession, now: int, ended: StompTransaction, token: int) -> None:
    """Commits. If the queue of a message group is not known yet, the input waits and this is repeated."""
    kernel = session.kernel
    ended.take_dead_letters(kernel, now)
    try:
        kernel.discharge(now, ended.transaction, True, token)
    except Postponed as postponed:
        kernel.wait(now, postponed, None, _retry(session, ended, token))
        return
    for part, message_id in ended.dead_letters:
        give_credits(session, part, message_id, False)
    for part, message_id, rejected in ended.refusals:
        if part.number in session.parts and message_id in part.window.held:
            kernel.settle(now, part.number, message_id, rejected, ADDRESS_DELAY, SILENT)
            give_credits(session, part, message_id, False)


def _retry(session: StompSession, ended: StompTransaction, token: int) -> Callable[[int], None]:
    """Returns the function that commits again."""
    return lambda now: _commit_again(session, now, ended, token)


def _commit_again(session: StompSession, now: int, ended: StompTransaction, token: int) -> None:
    try:
        _discharge(session, now, ended, token)
    except BrokerError as error:
        session.failed(token, error)


def abort(session: StompSession, now: int, frame: Frame) -> None:
    """Processes ABORT, behind the messages of the transaction."""
    ended = _ended(session, frame)
    token = session.token_for(frame.get("receipt"))
    if ended.lane in session.waiting.lanes:
        session.set_aside(now, ended.lane, WaitingEnd(session, ended, token, False))
    else:
        _roll_back(session, now, ended, token)


def _roll_back(session: StompSession, now: int, ended: StompTransaction, token: int) -> None:
    """Rolls back. The acknowledged messages are delivered again; in Classic they stay with the client."""
    if session.classic:
        _keep(session, ended.transaction)
    session.kernel.discharge(now, ended.transaction, False, token)


def _keep(session: StompSession, transaction: SessionTransaction) -> None:
    """Gives the acknowledged messages back to their subscriptions, whose client is to acknowledge them again."""
    kernel = session.kernel
    kernel.services.command.begin_change()
    costs: dict[int, dict[int, int]] = {}
    for reference in keep_delivered(kernel, transaction):
        if reference.consumer is not None:
            costs.setdefault(reference.consumer.id, {})[int(reference.message.id)] = int(reference.size)
    for number, held in costs.items():
        part = session.parts[number]
        kernel.consumers[number].take_credits(part.window.hold_again(held))
        part.subscription.order_again()
