"""Consumers of different priorities, and browsers, at one queue of each node; some close, and others are opened.

An observer of each node checks every delivery: consumers that are ready share the messages of their priority evenly,
and a lower priority gets none.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel import Observer
from atalanta.kernel.queue import Queue, QueueConsumer, Reference
from atalanta.message import Message
from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.client import then
from atalanta.sim.clients.jobs import ANSWERED
from atalanta.sim.clients.jobs import SimConsumer as OneConsumer
from atalanta.sim.clients.queue_client import key_of
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import address_of
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client import UNLIMITED, ClientConsumer, Delivery

SHIFTS: Final = "shifts"
SHARE: Final = 0.1
CONSUMERS: Final = 4  # of one client
BROWSING: Final = 0.3  # of the consumers that are opened later
PRIORITIES: Final = (0, 3, 3, 3, 9)
WINDOWS: Final = (UNLIMITED, UNLIMITED, UNLIMITED, 300)


class PrioritiesLoad(SenderLoad):
    """The load: a sender of single messages and bursts, and a client with several consumers, at every node; at
    the first there are two."""

    def configure(self, index: int, config: NodeConfig) -> None:
        config.broker.addresses.append(address_of(SHIFTS))

    def populate(self, hosts: list[Host], seconds: float) -> None:
        for host in hosts:
            host.on_started.append(watch)
            per_second = self.world.random("shifts").choice((3.0, 8.0))
            self.senders.append(
                ShiftSender(
                    self.world, self.network, f"ws-{host.name}", host.name, self.ledger, SHIFTS,
                    int(seconds * per_second), per_second,
                )
            )  # fmt: skip
            for number in range(2 if host is hosts[0] else 1):
                name = f"wc{number}-{host.name}"
                self.takers.append(Crew(self.world, self.network, name, host.name, self.ledger))

    def repair(self) -> None:
        super().repair()
        for each in self.takers:
            if isinstance(each, Crew):
                each.over = True

    def check(self) -> None:
        self.ledger.check_acknowledged("ws-", SHIFTS)


class ShiftSender(Sender):
    """A sender whose messages have two priorities, and come alone or three at once."""

    def pause_ns(self) -> int:
        burst = self.next < self.total and self.random.random() < 0.5
        return 500_000 if burst else super().pause_ns()

    def message(self, key: str, number: int) -> Message:
        message = super().message(key, number)
        message.priority = 4 if number % 5 else 7
        return message


class Crew(OneConsumer):
    """A client with several consumers in one session. The first stays, the others are closed and replaced."""

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger
    ) -> None:
        super().__init__(world, network, name, target, ledger, SHIFTS)
        self.acknowledges = ANSWERED
        self.change_ns_max = self.random.choice((SECOND, 4 * SECOND))
        self.over = False

    def on_session(self) -> None:
        self._open(False)
        for _ in range(1, CONSUMERS):
            self._open(self.random.random() < BROWSING)
        self.session.start()
        self._change_later()

    def _open(self, browsing: bool) -> None:
        draw = self.random
        consumer, _ = self.session.consumer(
            SHIFTS, None, browsing, draw.choice(PRIORITIES), draw.choice(WINDOWS)
        )
        consumer.on_message = self._browsed if browsing else self.on_message
        then(consumer.arrival(), lambda reply: self._failed(consumer))

    def _failed(self, consumer: ClientConsumer) -> None:
        """Opens another consumer: a node that leaves takes none."""
        if consumer.failed is not None:
            self.in_session(SECOND, lambda: self._replace(consumer))

    def _browsed(self, delivery: Delivery) -> None:
        key = key_of(delivery.message)
        if key not in self.ledger.sent:
            raise Violation(f"{SHIFTS} showed {key}, which no client sent", key)
        delivery.consumer.handled(delivery.cost)

    def _change_later(self) -> None:
        self.in_session(self.random.randint(1, self.change_ns_max), self._change)

    def _change(self) -> None:
        consumers = list(self.session.consumers.values())
        if self.over:
            return
        if self.ready and len(consumers) > 1:
            self._replace(self.random.choice(consumers[1:]))
        self._change_later()

    def _replace(self, consumer: ClientConsumer) -> None:
        """Closes the consumer, whose messages go to another one, and opens a new one."""
        if consumer.id not in self.session.consumers:
            return
        first = consumer is next(iter(self.session.consumers.values()))
        self.held = [each for each in self.held if each.consumer is not consumer]
        self.session.close_consumer(consumer)
        self._open(not first and self.random.random() < BROWSING)


def watch(host: Host) -> None:
    """Checks the deliveries of the node's queue from its start on."""
    assert host.node is not None
    broker = host.node.broker
    broker.queues[SHIFTS].watch_deliveries()
    broker.observers.append(Turns(host.name))


class Turns(Observer):
    """The check of one life of a node: deliveries by consumer since the ready consumers of the priority changed.

    The observer is called after a dispatch: who has credit then had it all the time.
    """

    def __init__(self, node: str) -> None:
        self.node = node
        self.counts: dict[int, dict[QueueConsumer, int]] = {}  # by priority

    def on_consumer_added(self, now: int, consumer: QueueConsumer) -> None:
        if not consumer.browse_only:
            self.counts.clear()

    def on_consumer_removed(self, now: int, consumer: QueueConsumer) -> None:
        if not consumer.browse_only:
            self.counts.clear()

    def on_delivered(self, now: int, consumer: QueueConsumer, reference: Reference) -> None:
        if consumer.browse_only or consumer.queue.spec.name != SHIFTS:
            return
        key = str(reference.message.properties.get("key"))
        ready = ready_consumers(consumer.queue)
        if any(each.priority > consumer.priority for each in ready):
            raise Violation(
                f"{self.node}: {key} went to priority {consumer.priority}, though a higher one has credit", key
            )
        alike = [each for each in ready if each.priority == consumer.priority]
        counts = self.counts.get(consumer.priority)
        if counts is None or list(counts) != alike:
            counts = self.counts[consumer.priority] = dict.fromkeys(alike, 0)
        if consumer in counts:
            counts[consumer] += 1
            shares = list(counts.values())
            if max(shares) > min(shares) + 1:
                raise Violation(f"{self.node}: consumers of priority {consumer.priority} got {shares}", key)


def ready_consumers(queue: Queue) -> list[QueueConsumer]:
    """Returns the consumers that can take a message, without browsers."""
    return [each for each in queue.consumers if each.ready() and not each.browse_only]
