"""The base of simulated clients that consume one queue. They retry while the queue does not exist."""

from __future__ import annotations

from typing import Final

from atalanta.message import Message
from atalanta.sim.clients.client import SimClient, then
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client import ClientConsumer, Delivery, Reply

CREDIT_BYTES: Final = 4_000


class QueueClient(SimClient):
    """A consumer of `queue` with a window of `credit_bytes`."""

    consumer: ClientConsumer

    def __init__(self, world: World, network: Network, name: str, target: str, queue: str) -> None:
        super().__init__(world, network, name, target)
        self.queue = queue
        self.selector: str | None = None
        self.credit_bytes = CREDIT_BYTES

    def on_session(self) -> None:
        self._consume()

    def _consume(self) -> None:
        self.consumer, _ = self.session.consumer(
            self.queue, self.selector, window=self.credit_bytes
        )
        self.consumer.on_message = self.on_message
        then(self.consumer.arrival(), self._ended)
        self.session.start()

    def _ended(self, reply: Reply) -> None:
        """Creates the consumer again after a second: the queue does not exist yet, or was deleted."""
        consumer = self.consumer

        def again() -> None:
            self.session.close_consumer(consumer)
            self._consume()

        self.in_session(SECOND, again)

    def on_message(self, delivery: Delivery) -> None:
        """Handles a delivery."""
        raise NotImplementedError


def key_of(message: Message) -> str:
    return str(message.properties.get("key"))
