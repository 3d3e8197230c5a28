"""A client that moves orders into the book: acknowledgement and send in one transaction, exactly once.

Half of these clients ask for an answer to each acknowledgement (blockOnAcknowledge), and commit without awaiting it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from atalanta.kernel import ADDRESS_FULL
from atalanta.kernel.queue import ANYCAST
from atalanta.message import Byte, Message
from atalanta.sim.checks.ledger import BOOK, ORDERS, Ledger, Violation
from atalanta.sim.clients.client import then
from atalanta.sim.clients.queue_client import QueueClient, key_of
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.wire.core.client import Delivery, Reply

BATCH_MAX: Final = 4
ANSWERED: Final = 0.5  # of the movers


class OrderMover(QueueClient):
    """Takes up to BATCH_MAX orders into a transaction, then commits, or sometimes rolls back."""

    transacted = True

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger
    ) -> None:
        super().__init__(world, network, name, target, ORDERS)
        self.ledger = ledger
        self.random = world.random(f"mover/{name}")
        self.answered = world.random(f"mover/{name}/answers").random() < ANSWERED
        self.waiting: deque[Delivery] = deque()
        self.taken: list[str] = []
        self.batch = 0  # number of the transaction
        self.ending = False  # the answer to the commit or rollback is awaited

    def on_session(self) -> None:
        self.producer = self.session.producer(BOOK)
        super().on_session()

    def on_message(self, delivery: Delivery) -> None:
        key = key_of(delivery.message)
        self.ledger.deliver(ORDERS, key, self.name, self.network.left_at(self.conn))
        self.waiting.append(delivery)
        self._take()

    def _take(self) -> None:
        while self.waiting and not self.ending:
            delivery = self.waiting.popleft()
            if delivery.lost:  # lost by a rollback
                self.consumer.handled(delivery.cost)
            else:
                self._move(delivery)

    def _move(self, delivery: Delivery) -> None:
        key = key_of(delivery.message)
        if self.answered:
            then(self.consumer.acknowledge_and_wait(delivery, True), self._acknowledged)
        else:
            self.consumer.acknowledge_one(delivery)
        self.consumer.handled(delivery.cost)
        body = delivery.message.body
        copy = Message.create(BOOK, body, 4, True, self.world.now // 1_000_000, 4)
        copy.properties.put("key", key)
        copy.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        copy.properties_changed()
        self.producer.send_message(copy, False)
        self.taken.append(key)
        batch = self.batch
        if len(self.taken) == 1:
            self.later(self.random.randint(1, 60) * 1_000_000, lambda: self._finish(batch))
        elif len(self.taken) >= BATCH_MAX:
            self._finish(batch)

    def _acknowledged(self, reply: Reply) -> None:
        if reply.error is not None and not self.cut_short(reply.error):
            raise Violation(f"{self.name}: {reply.error.text}")

    def _finish(self, batch: int) -> None:
        """Ends the transaction; the next one starts after the answer."""
        if self.batch != batch or self.ending:
            return
        self.ending = True
        if self.random.random() < 0.1:
            then(self.session.stop(), self._stopped)
            return
        if self.world.telling:
            for key in self.taken:
                self.world.tell(key, f"{self.name} commits the transaction that moves {key}")
        then(self.session.commit(), self._committed)

    def _stopped(self, reply: Reply) -> None:
        """Rolls back once no more deliveries arrive: the received messages are returned."""
        if reply.error is None or not self.cut_short(reply.error):
            then(self.session.rollback(), self._rolled_back)

    def _rolled_back(self, reply: Reply) -> None:
        self.session.start()
        self._next()

    def _committed(self, reply: Reply) -> None:
        if reply.error is None:
            for key in self.taken:
                self.ledger.move(key)
        elif reply.error.code == ADDRESS_FULL:
            then(self.session.stop(), self._stopped)  # the node's disk is full: it took nothing
            return
        elif not self.cut_short(reply.error):
            raise Violation(f"{self.name}: {reply.error.text}")
        self._next()

    def _next(self) -> None:
        self.batch += 1
        self.taken = []
        self.ending = False
        self._take()

    def on_lost(self) -> None:
        """Forgets the transaction, like a program whose next call reports the rollback."""
        self.waiting.clear()
        if self.session.rolled_back:
            self.session.rollback()
        self._next()
