"""The jobs of simulated clients that send and consume.

Logs are read in sim/clients/readers.py; transactions are in sim/clients/mover.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.kernel.queue import ANYCAST, MULTICAST
from atalanta.message import Byte, Message
from atalanta.sim.checks.instants import Instants
from atalanta.sim.checks.ledger import ORDERS, Ledger, Violation
from atalanta.sim.clients.client import then
from atalanta.sim.clients.queue_client import QueueClient, key_of
from atalanta.sim.clients.senders import Sender
from atalanta.sim.nodes import PRICES
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.wire.core.client import Delivery, Reply

WINDOW: Final = 8
LIFE_MS: Final = 3_000  # of every tenth message, an order: most are taken in time
# Modes of acknowledgement: each message with an answer, each without one, or all earlier ones with
# it.
ANSWERED: Final = "answered"
ONE: Final = "one"
THROUGH: Final = "through"
ACKNOWLEDGEMENTS: Final = (ANSWERED, ANSWERED, ANSWERED, ANSWERED, ONE, THROUGH)


def no_binding(name: str) -> int:
    return 0


class SimProducer(Sender):
    """Sends numbered messages to orders and prices. After a loss it sends unconfirmed ones again with the same ids.

    `knows_alerts(node)` is not 0 while that node has a binding for alerts, and differs in each of its lives. A node
    that has just started routes to other nodes' subscriptions only once it knows them, as in Artemis.

    Messages are sent in bursts, one in `mean_ns` on average, so that faults hit some of them under way.
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
        super().__init__(world, network, name, target, ledger, ORDERS, total, 1.0)
        self.window = WINDOW
        self.knows_alerts: Callable[[str], int] = no_binding
        self.known_at: dict[int, tuple[str, int]] = {}
        self.random = world.random(f"producer/{name}")
        self.burst_share = self.random.choice((0.0, 0.5, 0.9))
        self.pause_ns_max = max(2, int(2 * mean_ns / (1 - self.burst_share)))

    def begin(self, key: str, number: int) -> None:
        self.ledger.sending(key, number % 2 == 0, number % 6 == 0, durable(number))
        self.known_at[number] = (self.target, self.knows_alerts(self.target))

    def confirmed(self, key: str, number: int) -> None:
        node, life = self.known_at.pop(number)
        here = node == self.target and life == self.knows_alerts(self.target)
        self.ledger.confirm(key, life > 0 and here)

    def pause_ns(self) -> int:
        burst = self.random.random() < self.burst_share
        return 500_000 if burst else super().pause_ns()

    def message(self, key: str, number: int) -> Message:
        prices = number % 2 == 0
        body = key.encode() + bytes(self.random.randint(0, 200))
        message = Message.create(
            PRICES if prices else ORDERS, body, 4, durable(number), self.world.now // 1_000_000, 4
        )
        message.properties.put("alert", number % 6 == 0)
        if later_ms(number) > 0:
            at_ms = self.world.now // 1_000_000 + later_ms(number)
            message.properties.put("_AMQ_SCHED_DELIVERY", at_ms)
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(MULTICAST if prices else ANYCAST))
        if number % 10 == 1:
            message.expiration = self.world.now // 1_000_000 + LIFE_MS
        return message


def durable(number: int) -> bool:
    """Returns False for every twelfth message: non-durable messages are between the others in the archive."""
    return number % 12 != 4


def later_ms(number: int) -> int:
    """Returns the delay of an order, up to a second: faults, forwarding and compaction happen while it is scheduled.

    Prices have no delay: log readers check that the archive keeps the order of each producer.
    """
    return number % 7 * 150 if number % 10 in (3, 7) else 0


class SimConsumer(QueueClient):
    """Consumes and acknowledges messages of one queue; it can move to another node."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        target: str,
        ledger: Ledger,
        queue: str,
        instants: Instants | None = None,
    ) -> None:
        super().__init__(world, network, name, target, queue)
        self.ledger = ledger
        self.instants = instants
        self.random = world.random(f"consumer/{name}")
        self.slowness_ns = self.random.choice((0, 1_000_000, 30_000_000))
        self.acknowledges = world.random(f"acknowledging/{name}").choice(ACKNOWLEDGEMENTS)
        self.held: list[Delivery] = []  # in the order of arrival
        # A selector that matches every order is still evaluated by peers and queues.
        if queue == ORDERS and self.random.random() < 0.3:
            self.selector = "key IS NOT NULL"

    def on_message(self, delivery: Delivery) -> None:
        key = key_of(delivery.message)
        self.ledger.deliver(self.queue, key, self.name, self.network.left_at(self.conn))
        if self.instants is not None:
            self.instants.check_due(key, delivery.message)
        self.held.append(delivery)
        self.in_session(
            self.random.randint(0, self.slowness_ns), lambda: self.acknowledge(delivery)
        )

    def acknowledge(self, delivery: Delivery) -> None:
        """Acknowledges the message, unless it is lost or was acknowledged with a later one."""
        consumer = delivery.consumer
        if delivery.lost or delivery not in self.held:
            return
        through = self.held.index(delivery) + 1 if self.acknowledges == THROUGH else 0
        ended = [each for each in self.held[:through] if not each.lost] or [delivery]
        for each in ended:
            self.held.remove(each)
            self.ledger.acknowledge(self.queue, key_of(each.message))
        if self.acknowledges == ANSWERED:
            reply = consumer.acknowledge_and_wait(delivery, True)
            then(reply, lambda reply: self._acknowledged(delivery, reply))
        elif self.acknowledges == ONE:
            consumer.acknowledge_one(delivery)
        else:
            consumer.acknowledge_through(delivery, 0)
        for each in ended:
            consumer.handled(each.cost)

    def on_lost(self) -> None:
        self.held = []

    def _acknowledged(self, delivery: Delivery, reply: Reply) -> None:
        """Settles the message. The answer to a lost connection settles nothing."""
        if reply.error is None:
            if self.session.open and not delivery.lost:
                self.ledger.settle(self.queue, key_of(delivery.message))
        elif not self.cut_short(reply.error):
            raise Violation(f"{self.name}: {reply.error.text}")

    def move(self, target: str) -> None:
        """Connects to another node, even if the client is down. Unacknowledged messages are redelivered."""
        self.kill()
        self.target = target
        self.start()


class SimWatcher(SimConsumer):
    """A consumer that also reports its messages to a callback."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        target: str,
        ledger: Ledger,
        queue: str,
        arrived: Callable[[Message], None],
    ) -> None:
        super().__init__(world, network, name, target, ledger, queue)
        self.arrived = arrived

    def on_message(self, delivery: Delivery) -> None:
        self.arrived(delivery.message)
        super().on_message(delivery)
