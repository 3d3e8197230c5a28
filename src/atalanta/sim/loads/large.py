"""Large messages, sent in pieces and forwarded in segments: they arrive complete, and every file is deleted."""

from __future__ import annotations

from typing import Final

from atalanta.message import Message
from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.jobs import SimConsumer
from atalanta.sim.clients.queue_client import key_of
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import address_of
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.wire.core.client import ClientProducer, Delivery, LargeMessageStream, Reply

FREIGHT: Final = "freight"
SHARE: Final = 0.25
SMALLEST_BYTES: Final = 400
STEP_BYTES: Final = 1_100
STEPS: Final = 6


class LargeMessages(SenderLoad):
    """The load: `freight` on every node, with one consumer, or one per node without redistribution."""

    roams = True

    def __init__(self, world: World, network: Network, ledger: Ledger, everywhere: bool) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("large messages")
        self.everywhere = everywhere
        self.piece_bytes = self.random.choice((700, 3_000, 10_000))
        self.segment_bytes = self.random.choice((1_000, 4_000, 102_400))

    def configure(self, index: int, config: NodeConfig) -> None:
        config.broker.addresses.append(address_of(FREIGHT))
        if config.cluster is not None:
            config.cluster.cluster_connections[0].min_large_message_bytes = self.segment_bytes

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        for number, host in enumerate(self.random.sample(hosts, min(2, len(hosts)))):
            name = f"lp{number}"
            sender = LargeSender(
                self.world,
                self.network,
                name,
                host.name,
                self.ledger,
                FREIGHT,
                max(3, int(seconds)),
                1.0,
            )
            sender.piece_bytes = self.piece_bytes
            self.senders.append(sender)
        for host in hosts if self.everywhere else [self.random.choice(hosts)]:
            self.takers.append(
                LargeConsumer(
                    self.world, self.network, f"lc-{host.name}", host.name, self.ledger, FREIGHT
                )
            )

    def left(self) -> list[str]:
        found = super().left()
        for host in self.hosts:
            if host.large.contents and not host.standby():
                found.append(
                    f"{host.name} keeps files of large messages: {sorted(host.large.contents)}"
                )
        return found

    def check(self) -> None:
        self.ledger.check_acknowledged("lp", FREIGHT)


def body_of(key: str) -> bytes:
    """Returns the body for a key; the first of every STEPS is a body of an ordinary message."""
    _, _, number = key.partition("/")
    size = SMALLEST_BYTES + int(number) % STEPS * STEP_BYTES
    return (key.encode() + b".") * (size // (len(key) + 1) + 1)


class LargeSender(Sender):
    """Sends chunks of `piece_bytes`, as the client sends streams. Its sessions end with their connections."""

    piece_bytes: int = 1_000
    resume = False

    def body(self, number: int) -> bytes:
        return body_of(f"{self.name}/{number}")

    def write(self, producer: ClientProducer, message: Message, number: int) -> Reply:
        if number % STEPS == 0:
            return super().write(producer, message, number)
        body = self.body(number)
        sending = LargeMessageStream(producer, message.head)
        last = (len(body) - 1) // self.piece_bytes * self.piece_bytes
        for start in range(0, last, self.piece_bytes):
            sending.add(body[start : start + self.piece_bytes])
        return sending.finish(body[last:])


class LargeConsumer(SimConsumer):
    """A consumer that checks the bodies that the client engine has assembled."""

    def on_message(self, delivery: Delivery) -> None:
        message = delivery.message
        key = key_of(message)
        if delivery.error is not None or message.body != body_of(key):
            raise Violation(f"{key} arrived with {len(message.body)} bytes: {delivery.error}", key)
        super().on_message(delivery)
