"""Large messages: sent in pieces, forwarded in segments, whole when they arrive, and no file is left behind."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.config import AddressConfig
from atalanta.kernel.message import Message
from atalanta.kernel.queue_spec import ANYCAST
from atalanta.node import NodeConfig
from atalanta.sim.host import Host
from atalanta.sim.jobs import Consumer
from atalanta.sim.ledger import Ledger, Violation
from atalanta.sim.network import Network
from atalanta.sim.nodes import queue
from atalanta.sim.senders import Sender
from atalanta.sim.sending import Sending
from atalanta.sim.world import World
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets_message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
    ReceiveMessage,
    SendContinuation,
    SendLargeMessage,
)
from atalanta.wire.core.packets_session import SessionStart

FREIGHT: Final = "freight"
SHARE: Final = 0.25
SMALLEST_BYTES: Final = 400
STEP_BYTES: Final = 1_100
STEPS: Final = 6


class LargeMessages(Sending):
    """`freight` on every node, one consumer, or one at each node where messages are not moved."""

    roams = True

    def __init__(self, world: World, network: Network, ledger: Ledger, everywhere: bool) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("large messages")
        self.everywhere = everywhere
        self.piece_bytes = self.random.choice((700, 3_000, 10_000))
        self.segment_bytes = self.random.choice((1_000, 4_000, 102_400))

    def configure(self, index: int, config: NodeConfig) -> None:
        address = AddressConfig(FREIGHT)
        address.add(queue(FREIGHT, FREIGHT, ANYCAST))
        config.broker.addresses.append(address)
        if config.cluster is not None:
            config.cluster.cluster_connections[0].min_large_message_bytes = self.segment_bytes

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        for number, host in enumerate(self.random.sample(hosts, 2)):
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
            if host.large.contents:
                found.append(f"{host.name} keeps files of large messages: {sorted(host.large.contents)}")
        return found

    def check(self) -> None:
        for key in self.ledger.confirmed:
            if key.startswith("lp") and (FREIGHT, key) not in self.ledger.acknowledging:
                raise Violation(f"confirmed message lost: {key} was never taken from {FREIGHT}", key)


def body_of(key: str) -> bytes:
    """What a message of that key must be; the first of every STEPS is an ordinary one."""
    _, _, number = key.partition("/")
    size = SMALLEST_BYTES + int(number) % STEPS * STEP_BYTES
    return (key.encode() + b".") * (size // (len(key) + 1) + 1)


class LargeSender(Sender):
    """In pieces of `piece_bytes`."""

    piece_bytes: int = 1_000

    def body(self, number: int) -> bytes:
        return body_of(f"{self.name}/{number}")

    def write(self, message: Message, number: int) -> None:
        if number % STEPS == 0:
            super().write(message, number)
            return
        body = self.body(number)
        self.send(SendLargeMessage(message))
        for start in range(0, len(body), self.piece_bytes):
            last = start + self.piece_bytes >= len(body)
            piece = body[start : start + self.piece_bytes]
            self.send(
                SendContinuation(
                    piece,
                    continues=not last,
                    body_size=len(body),
                    requires_response=last,
                    correlation=number,
                    sender_id=1,
                )
            )


class LargeConsumer(Consumer):
    """Puts large messages together."""

    header: ReceiveLargeMessage | None = None
    parts: bytes = b""

    def on_ready(self) -> None:
        self.created = False
        self.header = None
        self.send(SessionStart())
        self.send(CreateConsumer(consumer_id=0, queue=self.queue))
        self.send(FlowToken(0, -1))

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, ReceiveLargeMessage):
            self.header = packet
            self.parts = b""
        elif isinstance(packet, ReceiveContinuation):
            self.parts += packet.body
            if not packet.continues and self.header is not None:
                header, self.header = self.header, None
                self._take(header.message, self.parts, header.body_size)
        elif isinstance(packet, ReceiveMessage):
            self._take(packet.message, bytes(packet.message.body), -1)
        else:
            super().on_packet(packet)

    def _take(self, message: Message, body: bytes, told: int) -> None:
        key = str(message.properties.get("key"))
        if body != body_of(key) or told not in (-1, len(body)):
            raise Violation(f"{key} arrived with {len(body)} bytes, {told} were announced", key)
        self.ledger.deliver(self.queue, key, self.name, self.network.left_at(self.conn))
        life, session = self.life, self.session
        self.world.at(
            self.random.randint(0, self.slowness_ns),
            lambda: self._acknowledge(life, session, key, message.id, 0),
        )
