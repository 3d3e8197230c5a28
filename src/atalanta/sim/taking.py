"""What simulated clients that consume one queue have in common: they come again where it is not there yet."""

from __future__ import annotations

from atalanta.sim.clients import SimClient
from atalanta.sim.ledger import Violation
from atalanta.sim.network import Network
from atalanta.sim.world import SECOND, World
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_connection import ExceptionResponse
from atalanta.wire.core.packets_consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets_query import QueueQueryResponseV3
from atalanta.wire.core.packets_session import SessionStart

CREDITS = 4_000


class Taking(SimClient):
    """Consumer 0 of `queue`, with a first credit of CREDITS bytes."""

    def __init__(self, world: World, network: Network, name: str, target: str, queue: str) -> None:
        super().__init__(world, network, name, target)
        self.queue = queue
        self.selector: str | None = None
        self.created = False

    def on_ready(self) -> None:
        self.created = False
        self.send(SessionStart())
        self.send(CreateConsumer(consumer_id=0, queue=self.queue, filter=self.selector))
        self.send(FlowToken(0, CREDITS))

    def on_packet(self, packet: Packet) -> None:
        """The answer to the consumer; what else is refused is a violation."""
        if isinstance(packet, QueueQueryResponseV3):
            self.created = True
        elif isinstance(packet, ExceptionResponse):
            if self.created:
                raise Violation(f"{self.name}: {packet.message}")
            life, session = self.life, self.session
            self.world.at(SECOND, lambda: self._create_again(life, session))

    def _create_again(self, life: int, session: int) -> None:
        if self.life == life and self.session == session and self.ready:
            self.on_ready()
