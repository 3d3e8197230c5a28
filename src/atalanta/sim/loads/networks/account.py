"""The account of a network: where each message was sent, and that it is consumed exactly once in all brokers together.

Two things may double a message, as in ActiveMQ Classic, and are written down for each: its sender went to another node
before it had the answer, or the answer to a bridge was lost, and a consumer here took what the other broker has too.
"""

from __future__ import annotations

from typing import Final

from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.world.world import World

ORDERS: Final = "orders"
BOOK: Final = "book"


class AccountedMessage:
    """A message. `nodes` to which it was sent, `due`: queues where it must arrive, `doubtful`: a bridge may repeat it.
    """

    def __init__(self, key: str, persistent: bool, due: list[str]) -> None:
        self.key = key
        self.persistent = persistent
        self.due = due
        self.nodes: list[str] = []
        self.doubtful = False
        self.confirmed = False


class NetworksAccount:
    """The messages by id. `one_way`: each message has one way only, on which a bridge's repeat is always found."""

    def __init__(self, world: World, ledger: Ledger) -> None:
        self.world = world
        self.ledger = ledger
        self.one_way = False
        self.sent: dict[str, AccountedMessage] = {}
        self.moves: dict[str, str] = {}  # the order of a message in `book`
        self.moved: dict[str, bool] = {}  # orders, by a confirmed transaction
        self.taken: dict[tuple[str, str], bool] = {}  # acknowledgements that were sent
        self.settled: dict[tuple[str, str], int] = {}  # time of the confirmed one
        self.doubled = 0  # with an excuse

    def tell(self, key: str, line: str) -> None:
        if self.world.telling:
            self.world.tell(key, line)

    def sending(self, key: str, node: str, persistent: bool, due: list[str]) -> None:
        """Records a send, or a repeat. If it is confirmed it must arrive in the queues that were due at each send."""
        self.tell(key, f"{key} is sent to {node}")
        sent = self.sent.setdefault(key, AccountedMessage(key, persistent, due))
        sent.due = [queue for queue in sent.due if queue in due]
        if node not in sent.nodes:
            sent.nodes.append(node)

    def moving(self, key: str, order: str, node: str) -> None:
        """Records that a transaction sends `key` in place of the order."""
        self.tell(order, f"a transaction at {node} moves it as {key}")
        self.sending(key, node, True, [BOOK])
        self.moves[key] = order

    def confirm(self, key: str) -> None:
        self.tell(key, f"{key} is confirmed to its sender")
        self.sent[key].confirmed = True
        self.ledger.confirmed[key] = True

    def move(self, key: str) -> None:
        """Records that the transaction that sends `key` in place of an order is confirmed."""
        self.confirm(key)
        self.moved[self.moves[key]] = True
        self.settle(ORDERS, self.moves[key])

    def doubt(self, key: str, where: str) -> None:
        """Records that a bridge has lost its connection before it had the answer to this message."""
        if key in self.sent:
            self.tell(key, f"{where} has lost the answer to it")
            self.sent[key].doubtful = True

    def deliver(self, queue: str, key: str, who: str, left_at: int) -> None:
        """Records a delivery; `left_at` as in Ledger.deliver."""
        self.tell(key, f"{who} gets {key} from {queue}")
        if key not in self.sent:
            raise Violation(f"{queue} delivered {key}, which no client sent", key)
        name = self._origin(key)
        settled_at = self.settled.get((queue, name), 0)
        if settled_at and not 0 < left_at <= settled_at:
            self._double(key, f"{queue} delivered {key} to {who} after its acknowledgement was confirmed")
        count = self.ledger.delivered.get((queue, key), 0)
        self.ledger.delivered[(queue, key)] = count + 1
        self.ledger.redelivered += count > 0

    def take(self, queue: str, key: str) -> None:
        """Records that an acknowledgement was sent; it may be lost."""
        self.taken[(queue, self._origin(key))] = True

    def settle(self, queue: str, key: str) -> None:
        """Records a confirmed acknowledgement."""
        self.tell(key, f"its acknowledgement in {queue} is confirmed")
        name = self._origin(key)
        if (queue, name) in self.settled:
            self._double(key, f"two acknowledgements of {key} in {queue} were confirmed")
        self.settled[(queue, name)] = self.world.now

    def _origin(self, key: str) -> str:
        return self.moves.get(key, key)

    def _double(self, key: str, why: str) -> None:
        for each in (key, self._origin(key)):
            sent = self.sent[each]
            if len(sent.nodes) > 1 or (sent.doubtful and not self.one_way):
                self.doubled += 1
                return
        raise Violation(why, key)

    def left(self) -> list[str]:
        """Returns what must still arrive."""
        found: list[str] = []
        for sent in self.sent.values():
            if sent.confirmed and sent.persistent:
                found.extend(f"{sent.key} in {queue}" for queue in self._missing(sent))
        return found

    def _missing(self, sent: AccountedMessage) -> list[str]:
        name = self._origin(sent.key)
        if sent.due == [ORDERS] and (BOOK, name) in self.taken:
            return []
        return [queue for queue in sent.due if (queue, name) not in self.taken]

    def check(self) -> None:
        """Raises Violation for the first confirmed message that did not arrive."""
        for sent in self.sent.values():
            missing = self._missing(sent) if sent.confirmed and sent.persistent else []
            if missing:
                raise Violation(f"confirmed message lost: {sent.key} was never taken from {missing[0]}", sent.key)
            settled = (ORDERS, sent.key) in self.settled and sent.key not in self.moved
            if settled and (BOOK, sent.key) in self.taken:
                self._double(sent.key, f"{sent.key} was acknowledged by a consumer, and moved into {BOOK} too")
