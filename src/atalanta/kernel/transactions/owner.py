"""The transactions of one session: the current one, declared ones, and the branch of a distributed one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.transactions.transaction import SessionTransaction

if TYPE_CHECKING:
    from atalanta.kernel.transactions.xa import XaBranch

TRANSACTIONS_MAX: Final = 1_000  # that one session may declare


@mypyc_attr(allow_interpreted_subclasses=True)
class TransactionOwner:
    """The transactions of a session. With `auto_commit_*` False, sends or acknowledgements join the current one.

    `declared` are open transactions that the protocol names itself. `xa`: the session may work in branches; `branch` is
    the one in progress, and `transaction` is then the branch's. `ended_branch` is the branch ended last, until it is
    committed or rolled back.
    """

    def __init__(self, name: str, auto_commit_sends: bool, auto_commit_acks: bool) -> None:
        self.name = name
        self.auto_commit_sends = auto_commit_sends
        self.auto_commit_acks = auto_commit_acks
        self.transaction = SessionTransaction()
        self.declared: list[SessionTransaction] = []
        self.xa: bool = False
        self.branch: XaBranch | None = None
        self.ended_branch: XaBranch | None = None
        self.xa_timeout_s: int = -1

    def declare(self) -> SessionTransaction:
        """Opens another transaction, for protocols with several in a session; `use` makes it the current one."""
        if len(self.declared) >= TRANSACTIONS_MAX:
            raise BrokerError(
                ILLEGAL_STATE, f"session {self.name} has {TRANSACTIONS_MAX} transactions already"
            )
        transaction = SessionTransaction()
        self.declared.append(transaction)
        return transaction

    def use(self, transaction: SessionTransaction | None) -> None:
        """Makes later sends and acknowledgements part of a declared transaction; None: of none."""
        if self.xa:
            raise BrokerError(ILLEGAL_STATE, f"session {self.name}: no such transaction")
        if transaction is not None:
            self.check_declared(transaction)
        self.transaction = SessionTransaction() if transaction is None else transaction
        self.auto_commit_sends = transaction is None
        self.auto_commit_acks = transaction is None

    def check_declared(self, transaction: SessionTransaction) -> None:
        """Raises BrokerError ILLEGAL_STATE for a transaction that is not declared, or ended already."""
        if transaction not in self.declared:
            raise BrokerError(ILLEGAL_STATE, f"session {self.name}: no such transaction")

    def enter(self, connection: int, branch: XaBranch | None) -> None:
        """Makes the session of that connection work in `branch`; None: in no transaction."""
        if self.branch is not None:
            self.branch.workers -= 1
        if branch is not None:
            branch.workers += 1
            branch.clients[connection] = True
        self.branch = branch
        self.transaction = SessionTransaction() if branch is None else branch.transaction
        self.auto_commit_sends = branch is None
        self.auto_commit_acks = branch is None

    def open_transactions(self) -> list[SessionTransaction]:
        """Returns the current transaction and all declared ones."""
        if not self.declared:
            return [self.transaction]
        others = [each for each in self.declared if each is not self.transaction]
        return [self.transaction, *others]

    def end_transaction(self, transaction: SessionTransaction) -> None:
        """Ends a transaction. A new one follows the session's own; after a declared one no transaction is current."""
        declared = transaction in self.declared
        if declared:
            self.declared.remove(transaction)
        if transaction is self.transaction:
            self.transaction = SessionTransaction()
            if declared:
                self.use(None)

    def roll_back(self, now: int, transaction: SessionTransaction, last_as_delivered: bool) -> None:
        """Rolls the transaction back: its sends are dropped, its acknowledged messages return to their queues."""
        raise NotImplementedError
