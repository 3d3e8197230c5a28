"""The subject of networks of brokers: failover clients that come and go, and the account of their messages."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.networks import NetworkSettings
from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Ledger
from atalanta.sim.host import Host
from atalanta.sim.loads.networks.account import BOOK, ORDERS, NetworksAccount
from atalanta.sim.loads.networks.bridges import BridgeWatch
from atalanta.sim.loads.networks.client import FailoverClient
from atalanta.sim.loads.networks.plan import HOME, ROAM, SINK, NetworkPlan
from atalanta.sim.loads.networks.workers import (
    NEWS,
    NetworkConsumer,
    NetworkMover,
    NetworkSender,
    NetworkSubscriber,
)
from atalanta.sim.nodes import Shape
from atalanta.sim.subject import Subject
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

LOOK_NS: Final = SECOND // 2
MESSAGES_PER_SECOND: Final = (3, 12)  # of one sender
ABSENCE_NS_MAX: Final = 3 * SECOND


class NetworksLoad(Subject):
    """The load. `machines` are its clients; it moves and restarts them itself."""

    def __init__(
        self, world: World, network: Network, ledger: Ledger, nodes: int, shape: Shape, faults: bool
    ) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("networks load")
        self.plan = NetworkPlan(world, nodes, shape)
        self.account = NetworksAccount(world, ledger)
        self.account.one_way = self.plan.kind == SINK and self.plan.is_tree()
        self.watch = BridgeWatch(self.account)
        self.faults = faults
        self.over = False
        self.producers: list[NetworkSender] = []
        self.consumers: list[NetworkConsumer | NetworkMover] = []
        self.subscribers: list[NetworkSubscriber] = []
        self.known: dict[tuple[int, str], bool] = {}  # subscriptions whose messages that node keeps

    def configure(self, index: int, config: NodeConfig) -> None:
        config.networks = NetworkSettings(self.plan.connectors(index))

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        names = [f"n{index}" for index in range(self.plan.nodes)]
        draw = self.random
        total = max(4, int(seconds * draw.randint(*MESSAGES_PER_SECOND)))
        for number in range(draw.randint(1, 3)):
            where = names if draw.random() < 0.5 else [draw.choice(names)]
            self.producers.append(
                NetworkSender(
                    self.world, self.network, f"np{number}", where, self.account, total, seconds, self.due
                )
            )
        for place in self._places(names):
            self._add(place, names)
        for number in range(draw.randint(0, 2)):
            subscriber = NetworkSubscriber(
                self.world, self.network, f"ns{number}", draw.choice(names), self.account
            )
            self.subscribers.append(subscriber)
        self.machines = list(self.producers)
        for client in self.clients():
            self.world.at(draw.randint(0, 2 * SECOND), client.start)
        for host in hosts:
            host.on_turn = self.watch.look
        self.world.at(LOOK_NS, self._look)
        if self.faults:
            self.world.at(SECOND, self._strike)

    def _places(self, names: list[str]) -> list[list[str]]:
        """Returns the nodes of each group of consumers."""
        if self.plan.kind == HOME:
            return [[name] for name in names]
        if self.plan.kind == SINK:
            return [[names[self.plan.sink]] for _ in range(self.random.randint(1, 2))]
        return [names for _ in range(self.random.randint(1, 3))]

    def _add(self, place: list[str], names: list[str]) -> None:
        number = len(self.consumers)
        world, network, account = self.world, self.network, self.account
        self.consumers.append(NetworkConsumer(world, network, f"no{number}", place, account, ORDERS))
        if self.random.random() < 0.4:
            self.consumers.append(NetworkMover(world, network, f"nm{number}", place, account))
        self.consumers.append(NetworkConsumer(world, network, f"nb{number}", place, account, BOOK))

    def clients(self) -> list[FailoverClient]:
        return [*self.producers, *self.consumers, *self.subscribers]

    # -- subscriptions --------------------------------------------------------------------------
    def _look(self) -> None:
        """Notes which nodes keep the messages of which subscription, once that is on disk."""
        for host in self.hosts:
            node = host.node
            if node is None or not node.journal.idle() or host.disk.busy() or host.disk.failed:
                continue
            index = int(host.name[1])
            for queue in node.broker.queues.values():
                if queue.durable and queue.spec.address == NEWS:
                    self.known[index, queue.name] = True
        self.world.at(LOOK_NS, self._look)

    def due(self, at: str) -> list[str]:
        """Returns the subscriptions that get a message of the topic that is sent at this machine now."""
        return [each.queue for each in self.subscribers if self._reaches(int(at[1]), each)]

    def _reaches(self, source: int, subscriber: NetworkSubscriber) -> bool:
        """Returns whether each node on the way has the subscription; of a ring that is not followed."""
        target = int(subscriber.home[1])
        if (target, subscriber.queue) not in self.known:
            return False
        if source == target:
            return True
        way = self.plan.way(source, target)
        if not self.plan.is_tree() or 0 <= self.plan.ttl < len(way) - 1:
            return False
        return all(self._passes(here, there, subscriber) for here, there in zip(way, way[1:], strict=False))

    def _passes(self, here: int, there: int, subscriber: NetworkSubscriber) -> bool:
        """Returns whether the bridge between these nodes has a durable subscription for the subscriber."""
        bridge = f"_n{there}_inbound_n{here}."
        own = "" if self.plan.conduit else f".{subscriber.name}:"
        return any(index == here and bridge in name and own in name for index, name in self.known)

    # -- faults ---------------------------------------------------------------------------------
    def _strike(self) -> None:
        """Moves or restarts one client now, and another one later."""
        if self.over:
            return
        draw = self.random
        client = draw.choice(self.clients())
        names = [f"n{index}" for index in range(self.plan.nodes)]
        if client.up and draw.random() < 0.5 and self._may_move(client):
            client.go(draw.sample(names, draw.randint(1, len(names))))
        elif client.up:
            client.kill()
            self.world.at(draw.randint(1, ABSENCE_NS_MAX), client.start)
        self.world.at(draw.randint(1, 2 * SECOND), self._strike)

    def _may_move(self, client: FailoverClient) -> bool:
        return isinstance(client, NetworkSender) or (
            self.plan.kind == ROAM and not isinstance(client, NetworkSubscriber)
        )

    # -- end ------------------------------------------------------------------------------------
    def repair(self) -> None:
        self.over = True
        for client in self.clients():
            client.start()
        for producer in self.producers:
            producer.finish()

    def left(self) -> list[str]:
        waiting = [f"{each.name} is not done" for each in self.clients() if not each.done() or not each.ready]
        return waiting + self.account.left()[:5]

    def key_left(self) -> str:
        missing = self.account.left()
        return missing[0].partition(" ")[0] if missing else ""

    def check(self) -> None:
        self.account.check()

    def failovers(self) -> int:
        """Returns how often clients came back after a lost connection."""
        return sum(each.failovers for each in self.clients())
