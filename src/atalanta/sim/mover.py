"""A client that moves orders into the book: acknowledgement and send in one transaction, exactly once."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.message import Message
from atalanta.kernel.properties import Byte
from atalanta.kernel.queue_spec import ANYCAST
from atalanta.sim.clients import SimClient
from atalanta.sim.ledger import BOOK, ORDERS, Ledger, Violation
from atalanta.sim.network import Network
from atalanta.sim.world import SECOND, World
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets_consumer import CreateConsumer, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets_message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets_query import QueueQueryResponseV3
from atalanta.wire.core.packets_session import SessionStart
from atalanta.wire.core.packets_transaction import Commit, Rollback

COMMIT: Final = 7
BATCH_MAX: Final = 4


class Mover(SimClient):
    """Takes up to BATCH_MAX orders into a transaction, then commits (or, now and then, rolls back)."""

    transacted = True

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger
    ) -> None:
        super().__init__(world, network, name, target)
        self.ledger = ledger
        self.random = world.random(f"mover/{name}")
        self.created = False
        self.taken: list[str] = []
        self.committing: list[str] = []
        self.used: int = 0
        # What arrives between a rollback and its answer was given back: the node will deliver it again.
        self.rolling = False

    def on_ready(self) -> None:
        self.created = False
        self.send(SessionStart())
        self.send(CreateConsumer(0, ORDERS, None, False, True, 0))
        self.send(FlowToken(0, 4_000))

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
        elif isinstance(packet, QueueQueryResponseV3):
            self.created = True
        elif isinstance(packet, ExceptionResponse):
            if self.created:
                raise Violation(f"{self.name}: {packet.message}")
            life, session = self.life, self.session
            self.world.at(SECOND, lambda: self._create_again(life, session))

    def _create_again(self, life: int, session: int) -> None:
        if self.life == life and self.session == session and self.ready:
            self.on_ready()

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
        self.send(SendMessage(copy, False, -1, 1))
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
