"""The jobs of simulated clients that send and consume; logs are read in readers.py, transactions made in mover.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.kernel.message import Message
from atalanta.kernel.properties import Byte
from atalanta.kernel.queue_spec import ANYCAST, MULTICAST
from atalanta.sim.clients import SimClient
from atalanta.sim.ledger import ORDERS, Ledger, Violation
from atalanta.sim.network import Network
from atalanta.sim.nodes import PRICES
from atalanta.sim.world import SECOND, World
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets_consumer import CreateConsumer, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets_message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets_query import QueueQueryResponseV3
from atalanta.wire.core.packets_session import SessionStart

WINDOW: Final = 8


def nobody_knows(name: str) -> int:
    return 0


class Producer(SimClient):
    """Sends numbered messages to orders and prices; after a loss it re-sends what was not confirmed, same ids.

    `knows_alerts(node)` is not 0 while that node has a binding for alerts, and another number in each of its lives:
    a node that has just started routes to other nodes' subscriptions only once it has heard of them (as in Artemis).
    Messages go out in bursts, one in `mean_ns` on average, so that faults meet some of them on their way.
    """

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        target: str,
        ledger: Ledger,
        total: int,
        mean_ns: int,
    ) -> None:
        super().__init__(world, network, name, target)
        self.ledger = ledger
        self.total = total
        self.next = 0
        self.open: dict[int, bool] = {}
        self.knows_alerts: Callable[[str], int] = nobody_knows
        self.known_at: dict[int, int] = {}
        self.random = world.random(f"producer/{name}")
        self.burst_share = self.random.choice((0.0, 0.5, 0.9))
        self.pause_ns_max = max(2, int(2 * mean_ns / (1 - self.burst_share)))

    def done(self) -> bool:
        return self.next >= self.total and not self.open

    def on_ready(self) -> None:
        for number in self.open:
            self._transmit(number)
        self._fill(self.life, self.conn)

    def _fill(self, life: int, conn: int) -> None:
        if not self.ready or self.life != life or self.conn != conn:
            return
        if self.next < self.total and len(self.open) < WINDOW:
            number = self.next
            self.next += 1
            self.open[number] = True
            self.ledger.sending(
                f"{self.name}/{number}", number % 2 == 0, number % 6 == 0, durable(number)
            )
            self.known_at[number] = self.knows_alerts(self.target)
            self._transmit(number)
        burst = self.random.random() < self.burst_share
        pause_ns = 500_000 if burst else self.random.randint(1, self.pause_ns_max)
        self.world.at(pause_ns, lambda: self._fill(life, conn))

    def _transmit(self, number: int) -> None:
        key = f"{self.name}/{number}"
        self.ledger.tell(key, f"{self.name} sends {key} to {self.target}")
        address = PRICES if number % 2 == 0 else ORDERS
        body = key.encode() + bytes(self.random.randint(0, 200))
        message = Message.create(address, body, 4, durable(number), self.world.now // 1_000_000, 4)
        message.properties.put("key", key)
        message.properties.put("alert", number % 6 == 0)
        message.properties.put("_AMQ_DUPL_ID", key)
        if later_ms(number) > 0:
            at_ms = self.world.now // 1_000_000 + later_ms(number)
            message.properties.put("_AMQ_SCHED_DELIVERY", at_ms)
        kind = MULTICAST if number % 2 == 0 else ANYCAST
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(kind))
        message.properties_changed()
        self.send(SendMessage(message, True, number, 1))

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, NullResponse):
            number = packet.correlation
            if self.open.pop(number, None):
                known = self.known_at.pop(number)
                self.ledger.confirm(
                    f"{self.name}/{number}", known > 0 and known == self.knows_alerts(self.target)
                )
        elif isinstance(packet, ExceptionResponse):
            raise Violation(f"{self.name}: {packet.message}")

    def on_lost(self) -> None:
        return None


def durable(number: int) -> bool:
    """One in twelve is not: such messages lie between the others in the archive."""
    return number % 12 != 4


def later_ms(number: int) -> int:
    """Some orders are scheduled, for up to a second: crashes, forwarding and compaction meet them while they wait.

    Not prices: log readers check that the archive keeps the order of each producer.
    """
    return number % 7 * 150 if number % 10 in (3, 7) else 0


class Consumer(SimClient):
    """Takes messages of one queue and acknowledges each, asking for an answer; it can move to another node."""

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger, queue: str
    ) -> None:
        super().__init__(world, network, name, target)
        self.home = target
        self.ledger = ledger
        self.queue = queue
        self.answers: list[str] = []
        self.created = False
        self.random = world.random(f"consumer/{name}")
        self.slowness_ns = self.random.choice((0, 1_000_000, 30_000_000))
        # A selector that takes every order is still one that peers and queues must look at.
        self.selector = (
            "key IS NOT NULL" if queue == ORDERS and self.random.random() < 0.3 else None
        )

    def on_ready(self) -> None:
        self.created = False
        self.send(SessionStart())
        self.send(CreateConsumer(0, self.queue, self.selector, False, True, 0))
        self.send(FlowToken(0, 4_000))

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, ReceiveMessage):
            key = str(packet.message.properties.get("key"))
            self.ledger.deliver(self.queue, key, self.name, self.network.left_at(self.conn))
            life, conn = self.life, self.conn
            message_id, cost = packet.message.id, packet.message.size
            self.world.at(
                self.random.randint(0, self.slowness_ns),
                lambda: self._acknowledge(life, conn, key, message_id, cost),
            )
        elif isinstance(packet, NullResponse):
            self.ledger.settle(self.queue, self.answers.pop(0))
        elif isinstance(packet, QueueQueryResponseV3):
            self.created = True
        elif isinstance(packet, ExceptionResponse):
            if self.created:
                raise Violation(f"{self.name}: {packet.message}")
            life, conn = self.life, self.conn
            self.world.at(SECOND, lambda: self._create_again(life, conn))

    def _create_again(self, life: int, conn: int) -> None:
        if self.life == life and self.conn == conn and self.ready:
            self.on_ready()

    def _acknowledge(self, life: int, conn: int, key: str, message_id: int, cost: int) -> None:
        if self.life == life and self.conn == conn:
            self.answers.append(key)
            self.ledger.acknowledge(self.queue, key)
            self.send(IndividualAcknowledge(0, message_id, True))
            self.send(FlowToken(0, cost + 40))

    def on_lost(self) -> None:
        self.answers = []

    def move(self, target: str) -> None:
        """Close here, come up there: what is unacknowledged is redelivered."""
        self.kill()
        self.target = target
        self.start()

    def go_home(self) -> None:
        if self.target != self.home:
            self.move(self.home)
