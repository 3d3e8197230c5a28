"""A member is away for longer than its messages wait for it, while its neighbour has a backlog of the same address.

What was parked for it then comes back among younger messages: to the place of its arrival, so that what waits there of
one sender is in the order in which it was sent.
"""

from __future__ import annotations

from typing import Final

from atalanta.cluster.parked import PARKED
from atalanta.kernel.config import AddressConfig
from atalanta.kernel.paging_view import everything
from atalanta.kernel.queue_spec import ANYCAST
from atalanta.kernel.reference import READY
from atalanta.node import NodeConfig
from atalanta.sim.departed import Departed
from atalanta.sim.faults import start
from atalanta.sim.host import Host
from atalanta.sim.jobs import Consumer
from atalanta.sim.ledger import PARCELS, Ledger, Violation
from atalanta.sim.network import Network
from atalanta.sim.nodes import Shape, queue
from atalanta.sim.return_order import ReturnOrder
from atalanta.sim.senders import Sender
from atalanta.sim.sending import Sending
from atalanta.sim.taking import key_of
from atalanta.sim.world import SECOND, World
from atalanta.wire.core.client_consumer import Delivery

SHARE: Final = 0.2
ANSWERS_LOST: Final = 0.5  # of the absences: what has arrived at the member is not known to have
HASTY: Final = 0.5  # of the worlds: who takes at `near` has room for many
RETURNS_MAX: Final = 2  # messages of one turn
LATE_NS: Final = 20_000_000  # between two turns
WINDOW_BYTES: Final = 1_000  # of the links: few messages may have arrived, the others are parked
LINK_LOST_NS: Final = 300_000_000  # until the crash of a member is known
PARKING_NS_MAX: Final = 3 * SECOND
TURN_NS: Final = SECOND // 20
LOOK_NS: Final = SECOND // 10


class Absences(Sending):
    """Senders at `near`, a consumer at `far`. `far` dies again and again; a slow consumer at `near` comes when the
    time of what is parked is over."""

    def __init__(
        self, world: World, network: Network, ledger: Ledger, nodes: int, shape: Shape
    ) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("absences")
        self.answers = world.random("absences/answers")
        self.near, self.far = self.random.sample(range(nodes), 2)
        shape.parked_timeout_ms = self.random.choice((0, 500, 1_000))
        self.timeout_ns = shape.parked_timeout_ms * 1_000_000
        self.over = False
        self.parking = False
        self.away = False
        self.enough = 0
        self.taker_at = 0
        self.until = 0
        self.rates = (8.0, 20.0)  # of a sender, per second
        self.ordered = [self.near]  # nodes where what waits is in the order of each sender

    def configure(self, index: int, config: NodeConfig) -> None:
        address = AddressConfig(PARCELS)
        address.add(queue(PARCELS, PARCELS, ANYCAST))
        config.broker.addresses.append(address)
        # What comes back from another member, or later than the next one, has no place among the others.
        config.settings.add(PARCELS, {"redistribution_delay_ms": -1, "redelivery_delay_ms": 0})
        assert config.cluster is not None
        for connection in config.cluster.cluster_connections:
            connection.producer_window_bytes = WINDOW_BYTES

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self._make_senders(hosts, seconds)
        near, far = hosts[self.near], hosts[self.far]
        self.taker = InOrder(self.world, self.network, "a-near", near, self.ledger, self.departed)
        if self.answers.random() < HASTY:
            self.taker.credit_bytes = 20_000
        near.late = PARKED
        near.late_by_ns = LATE_NS
        self.distant = SlowConsumer(self.world, self.network, "a-far", far.name, self.ledger)
        self._begin()

    def _make_senders(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        near = hosts[self.near]
        per_second = self.random.choice(self.rates)
        for number in range(2):
            self.senders.append(
                Sender(
                    self.world, self.network, f"ap{number}", near.name, self.ledger, PARCELS,
                    int(seconds * per_second), per_second,
                )
            )  # fmt: skip

    def _begin(self) -> None:
        self.takers.append(self.distant)
        self.world.at(SECOND, self._turn)
        self.world.at(LOOK_NS, self._look)
        self.world.at(TURN_NS, self._look_at_order)

    # -- absences -------------------------------------------------------------------------------
    def _turn(self) -> None:
        """What comes next: parking, an absence, or its end."""
        if self.over:
            return
        node = self.hosts[self.near].node
        if node is not None and node.cluster is not None:
            node.cluster.parked.moves_max = RETURNS_MAX
        now = self.world.now
        if self.away:
            if self.taker_at and now >= self.taker_at:
                self.taker_at = 0
                self.taker.start()
            if now >= self.until:
                self.away = False
                self.until = now + self.random.randint(SECOND // 2, 2 * SECOND)
                start(self.hosts[self.far])
        elif self.parking:
            if self._parked() >= self.enough or now >= self.until:
                self.parking = False
                self._die()
        elif now >= self.until and self._attended():
            self.parking = True
            self.enough = self.random.randint(2, 10)
            self.until = now + PARKING_NS_MAX
            self._empty_handed()
            near, far = self.hosts[self.near].name, self.hosts[self.far].name
            if self.answers.random() < ANSWERS_LOST:
                self.network.block(far, near)
            else:
                self.network.block(near, far)
        self.world.at(TURN_NS, self._turn)

    def _empty_handed(self) -> None:
        """As the parking begins: what comes to the neighbour's queue stays there."""
        self.taker.kill()

    def _die(self) -> None:
        """Who takes here comes before or after the time is over: it gets at once what was parked, or has to wait."""
        host = self.hosts[self.far]
        if host.up:
            host.crash()
            host.disk.slow = 1
        self.network.heal()
        self.away = True
        ripe = self.world.now + LINK_LOST_NS + self.timeout_ns
        self.taker_at = self.random.randint(self.world.now, ripe + SECOND // 2)
        self.until = max(self.taker_at, ripe) + self.random.randint(1, SECOND)

    def _parked(self) -> int:
        """Messages that certainly have not arrived at `far`."""
        near = self.hosts[self.near].node
        if near is None or near.cluster is None:
            return 0
        name = f"node-{self.far}"
        waiting = near.broker.queues.get(near.cluster.forward_name(name))
        if waiting is None:
            return 0
        through = near.cluster.parked.mark_of(name, waiting).through
        return sum(1 for each in everything(waiting) if each.sequence > through)

    def _attended(self) -> bool:
        """Whether `near` knows of the consumer at `far`."""
        near = self.hosts[self.near].node
        if near is None or near.cluster is None:
            return False
        record = near.cluster.peers.get(f"node-{self.far}")
        if record is None or not record.linked():
            return False
        return any(
            remote.address == PARCELS and remote.consumer_count > 0
            for remote in record.bindings.bindings.values()
        )

    # -- checks ---------------------------------------------------------------------------------
    def _look(self) -> None:
        if self.over:
            return
        self.departed.look()
        if not self.departed.sources:
            for index in self.ordered:
                check_senders(self.hosts[index])
        self.world.at(LOOK_NS, self._look)

    def _look_at_order(self) -> None:
        self.taker.order.look()
        self.world.at(TURN_NS, self._look_at_order)

    def mend(self) -> None:
        super().mend()
        self.over = True
        for taker in (self.taker, self.distant):
            taker.slowness_ns = 0
            taker.start()
        for host in self.hosts:
            if host.name not in (self.taker.target, self.distant.target):
                taker = SlowConsumer(
                    self.world, self.network, f"a-{host.name}", host.name, self.ledger
                )
                taker.slowness_ns = 0
                self.takers.append(taker)
                taker.start()
        self.takers.append(self.taker)

    def check(self) -> None:
        for key in self.ledger.confirmed:
            if key.startswith("ap") and (PARCELS, key) not in self.ledger.acknowledging:
                raise Violation(f"confirmed message lost: {key} never came out of {PARCELS}", key)


def check_senders(host: Host) -> None:
    """Violation for a parcel that waits behind a later one of its sender, who sends to that node."""
    waiting = None if host.node is None else host.node.broker.queues.get(PARCELS)
    if waiting is None:
        return
    newest: dict[str, int] = {}
    for reference in everything(waiting):
        key = reference.message.properties.get("key")
        if not isinstance(key, str) or reference.state != READY:
            continue
        sender, _, number = key.partition("/")
        if int(number) < newest.get(sender, -1):
            raise Violation(f"{key} waits behind {sender}/{newest[sender]} at {host.name}", key)
        newest[sender] = int(number)


class SlowConsumer(Consumer):
    """Has few messages in hand and takes its time, so that a queue keeps what comes."""

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger
    ) -> None:
        super().__init__(world, network, name, target, ledger, PARCELS)
        self.slowness_ns = self.random.choice((100_000_000, 400_000_000))
        self.credit_bytes = self.random.choice((1, 800))


class InOrder(SlowConsumer):
    """Gets what is there, and what comes back as its time is over, in the order of each sender."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        host: Host,
        ledger: Ledger,
        departed: Departed,
        order: ReturnOrder | None = None,
    ) -> None:
        super().__init__(world, network, name, host.name, ledger)
        self.departed = departed
        self.order = order or ReturnOrder(host, PARCELS)

    def on_session(self) -> None:
        self._begin()
        super().on_session()

    def on_resumed(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.departed.look()
        self.order.begin(bool(self.departed.sources))

    def on_message(self, delivery: Delivery) -> None:
        self.order.came(self.name, key_of(delivery.message))
        super().on_message(delivery)
