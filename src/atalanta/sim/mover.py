"""A client that moves orders into the book: acknowledgement and send in one transaction, exactly once."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.message import Message
from atalanta.kernel.properties import Byte
from atalanta.kernel.queue_spec import ANYCAST
from atalanta.sim.ledger import BOOK, ORDERS, Ledger
from atalanta.sim.network import Network
from atalanta.sim.taking import Taking
from atalanta.sim.world import World
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_connection import NullResponse
from atalanta.wire.core.packets_consumer import FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets_message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets_transaction import Commit, Rollback

COMMIT: Final = 7
BATCH_MAX: Final = 4


class Mover(Taking):
    """Takes up to BATCH_MAX orders into a transaction, then commits (or, now and then, rolls back)."""

    transacted = True

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger
    ) -> None:
        super().__init__(world, network, name, target, ORDERS)
        self.ledger = ledger
        self.random = world.random(f"mover/{name}")
        self.taken: list[str] = []
        self.committing: list[str] = []
        self.used: int = 0
        # What arrives between a rollback and its answer was given back: the node will deliver it again.
        self.rolling = False

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, ReceiveMessage):
            self._take(packet)
        elif isinstance(packet, NullResponse):
            if packet.correlation == COMMIT:
                for key in self.committing:
                    self.ledger.move(key)
                self.committing = []
            else:
                self.rolling = False
            self._give_credit()
        else:
            super().on_packet(packet)

    def _take(self, packet: ReceiveMessage) -> None:
        self.used += packet.message.size + 40
        if self.rolling:
            return
        key = str(packet.message.properties.get("key"))
        self.ledger.deliver(ORDERS, key, self.name, self.network.left_at(self.conn))
        self.send(IndividualAcknowledge(0, packet.message.id, False))
        copy = Message.create(BOOK, packet.message.body, 4, True, self.world.now // 1_000_000, 4)
        copy.properties.put("key", key)
        copy.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        copy.properties_changed()
        self.send(SendMessage(copy, sender_id=1))
        self.taken.append(key)
        if len(self.taken) == 1:
            life, session = self.life, self.session
            self.world.at(self.random.randint(1, 60) * 1_000_000, lambda: self._finish(life, session))
        elif len(self.taken) >= BATCH_MAX:
            self._finish(self.life, self.session)

    def _finish(self, life: int, session: int) -> None:
        """The end of the transaction; the next one begins with what comes in before its answer."""
        if self.life != life or self.session != session or not self.taken or self.committing:
            return
        if self.random.random() < 0.1:
            self.taken = []
            self.rolling = True
            self.send(Rollback(False))
            return
        self.committing = self.taken
        self.taken = []
        if self.world.telling:
            for key in self.committing:
                self.world.tell(key, f"{self.name} commits the transaction that moves {key}")
        self.send(Commit(COMMIT))

    def _give_credit(self) -> None:
        if self.used:
            self.send(FlowToken(0, self.used))
            self.used = 0
        if self.taken:
            life, session = self.life, self.session
            self.world.at(1_000_000, lambda: self._finish(life, session))

    def on_lost(self) -> None:
        self.taken = []
        self.committing = []
        self.used = 0
        self.rolling = False
