"""Subscriptions with overlapping addresses at every node: each gets each message once, wherever that was sent.

The queues are multicast, some at each node, or anycast with the same ones at all nodes. In half of the simulations the
messages reach the address by a divert. Some messages are scheduled, and some belong to message groups.
"""

from __future__ import annotations

from typing import Final

from atalanta.cluster import OFF, OFF_WITH_REDISTRIBUTION
from atalanta.kernel import ADDRESS_FULL
from atalanta.kernel.queue import ANYCAST, MULTICAST
from atalanta.kernel.routing import PASS, DivertConfig
from atalanta.message import Byte, Message
from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.jobs import ANSWERED, SimConsumer
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import Shape, address_of, queue
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.wire.core.client import ClientError

NEWS: Final = "news.eu.today"
TIP: Final = "tip"
# Each of them takes the messages to NEWS.
PATTERNS: Final = (NEWS, "news.#", "news.*.today", "#.today", "news.eu.*", "*.eu.#")
PATTERNS_MAX: Final = 4  # of one node
ANYCAST_SHARE: Final = 0.3  # of the simulations
DIVERTED: Final = 0.5  # of the simulations
GROUPED: Final = 0.5  # of the simulations
LATER_MS: Final = (0, 0, 0, 150, 600)
SHARE: Final = 0.2
# The generator that draws the subject: with this name no seed of tests/sim/seeds.txt has it, so they stay the same.
DRAW: Final = "overlaps 21222"


class Overlaps(SenderLoad):
    """The load: senders at two nodes, and a consumer of each queue."""

    def __init__(self, world: World, network: Network, ledger: Ledger, nodes: int, shape: Shape) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("overlaps/load")
        self.anycast = self.random.random() < ANYCAST_SHARE
        self.grouped = self.random.random() < GROUPED
        # What belongs to a message group is not moved to another node.
        self.everywhere = not self.anycast or self.grouped or shape.taken_everywhere()
        # With these a multicast message stays at its node.
        self.at_home = not self.anycast and shape.mode in (OFF, OFF_WITH_REDISTRIBUTION)
        self.address = TIP if self.random.random() < DIVERTED else NEWS
        alike = self.patterns()
        self.chosen = [alike if self.anycast else self.patterns() for _ in range(nodes)]
        self.owed: dict[str, list[str]] = {}  # key -> the queues that must have it

    def patterns(self) -> list[str]:
        found = self.random.sample(PATTERNS, self.random.randint(2, PATTERNS_MAX))
        # An anycast address without a queue of its own would get one.
        return [NEWS, *found[1:]] if self.anycast and NEWS not in found else found

    def queue_name(self, index: int, pattern: str) -> str:
        return f"of {pattern}" if self.anycast else f"n{index} of {pattern}"

    def configure(self, index: int, config: NodeConfig) -> None:
        kind = ANYCAST if self.anycast else MULTICAST
        for pattern in self.chosen[index]:
            own = queue(self.queue_name(index, pattern), pattern, kind)
            config.broker.addresses.append(address_of(pattern, own))
        if self.address == TIP:
            config.broker.diverts.append(DivertConfig("tips", TIP, NEWS, PASS, self.anycast))

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        self.staying = [host.name for host in hosts]  # a subscription is read at its own node
        per_second = self.random.choice((1.0, 3.0))
        total = max(4, int(seconds * per_second))
        for number, host in enumerate(self.random.sample(hosts, 2)):
            self.senders.append(
                NewsSender(self.world, self.network, f"op{number}", host.name, self, total, per_second)
            )
        for index, host in enumerate(hosts if self.everywhere else [self.random.choice(hosts)]):
            for pattern in self.chosen[index]:
                name = self.queue_name(index, pattern)
                client = f"oc-{name}-{host.name}"
                self.takers.append(NewsReader(self.world, self.network, client, host.name, self.ledger, name))

    def bound(self, name: str) -> tuple[int, list[tuple[str, int]]]:
        """Returns the life of that node, and the queues for whose bindings it sends; the life is 0 while it is down.

        A queue of one node stands with that node's life: after a stop in good order its binding is gone for a while.
        """
        machines = (name, *self.network.partners.get(name, []))
        for host in self.hosts:
            if host.name in machines and host.node is not None and host.current():
                found: list[tuple[str, int]] = []
                for index, patterns in enumerate(self.chosen):
                    for pattern in patterns:
                        address = host.node.broker.addresses.get(pattern)
                        queue_name = self.queue_name(index, pattern)
                        routing_name = pattern if self.anycast else queue_name
                        here = queue_name in host.node.broker.queues
                        if address is not None and routing_name in address.groups and (here or not self.at_home):
                            found.append((queue_name, 0 if self.anycast else self.hosts[index].life))
                return host.life, found
        return 0, []

    def check(self) -> None:
        for key, queues in self.owed.items():
            for name in queues:
                if (name, key) not in self.ledger.acknowledging:
                    raise Violation(f"confirmed message lost: {key} was never delivered from {name!r}", key)


class NewsReader(SimConsumer):
    """A consumer that waits for each answer: two confirmed acknowledgements show a message that came twice."""

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger, queue_name: str
    ) -> None:
        super().__init__(world, network, name, target, ledger, queue_name)
        self.acknowledges = ANSWERED


class NewsSender(Sender):
    """A sender to the address that all of the queues overlap at. It does not know more bindings than its node."""

    def __init__(
        self, world: World, network: Network, name: str, target: str, load: Overlaps, total: int, per_second: float
    ) -> None:
        super().__init__(world, network, name, target, load.ledger, load.address, total, per_second)
        self.load = load
        self.known: dict[int, tuple[str, int, list[tuple[str, int]]]] = {}

    def begin(self, key: str, number: int) -> None:
        super().begin(key, number)
        self.known[number] = (self.target, *self.load.bound(self.target))

    def confirmed(self, key: str, number: int) -> None:
        super().confirmed(key, number)
        node, life, before = self.known.pop(number)
        now, after = self.load.bound(self.target)
        if node == self.target and life == now > 0:
            self.load.owed[key] = [entry[0] for entry in before if entry in after]

    def in_group(self, number: int) -> bool:
        return self.load.grouped and number % 3 == 0

    def failed(self, number: int, error: ClientError) -> None:
        if not self.in_group(number) or error.code == ADDRESS_FULL or self.cut_short(error):
            super().failed(number, error)
        else:
            del self.open[number], self.known[number]  # a grouping handler did not decide in time

    def message(self, key: str, number: int) -> Message:
        message = super().message(key, number)
        properties = message.properties
        properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST if self.load.anycast else MULTICAST))
        later_ms = LATER_MS[number % len(LATER_MS)]
        if later_ms:
            properties.put("_AMQ_SCHED_DELIVERY", self.world.now // 1_000_000 + later_ms)
        if self.in_group(number):
            properties.put("_AMQ_GROUP_ID", f"group {number % 2}")
        return message
