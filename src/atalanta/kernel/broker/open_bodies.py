"""The bodies of large messages that are in no queue: sent in transactions, or by senders that left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.memory.large_body import OPEN_LOOK_NS, OPEN_TIMER

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeBodies
    from atalanta.kernel.ports import JournalPort, Timers
    from atalanta.kernel.sessions.clients import Clients
    from atalanta.kernel.transactions.xa import Branches
    from atalanta.message.message import Message


class OpenBodies:
    """Drops the bodies whose transactions have ended; a timer runs while there are open ones."""

    def __init__(
        self,
        large: LargeBodies,
        clients: Clients,
        branches: Branches,
        journal: JournalPort,
        timers: Timers,
    ) -> None:
        self.large = large
        self.clients = clients
        self.branches = branches
        self.journal = journal
        self.timers = timers

    def start(self, now: int) -> None:
        """Starts the timer, if bodies are open."""
        if self.large.open:
            self.timers.set(OPEN_TIMER, now + OPEN_LOOK_NS)

    def settle(self, now: int) -> None:
        """Handles large messages that ended in this batch of inputs, when all their records are in the journal."""
        if self.large.settle(self.journal.last, self.journal.durable):
            self.timers.set(OPEN_TIMER, now + OPEN_LOOK_NS)

    def on_timer(self, now: int) -> None:
        """Drops the bodies that no transaction uses."""
        used: dict[int, bool] = {}
        for session in self.clients.sessions():
            for transaction in session.open_transactions():
                _add_files(used, transaction.messages)
        for branch in self.branches.by_xid.values():
            _add_files(used, branch.transaction.messages)
            _add_files(used, [plan.message for plan in branch.plans])
        self.large.forget_unused(used, self.journal.last)
        self.large.on_durable(self.journal.durable)
        self.start(now)


def _add_files(used: dict[int, bool], messages: list[Message]) -> None:
    for message in messages:
        if message.large is not None:
            used[message.large.file] = True
