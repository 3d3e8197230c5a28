"""A member is down for longer than its messages wait for it, while another node has a backlog of the same address.

The messages parked for the member are moved to that node: none is lost, and none is delivered twice.
"""

from __future__ import annotations

from typing import Final

from atalanta.cluster import PARKED
from atalanta.kernel.queue import everything
from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import PARCELS, Ledger
from atalanta.sim.clients.jobs import SimConsumer
from atalanta.sim.clients.senders import Sender
from atalanta.sim.faults import start
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import Shape, address_of
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

SHARE: Final = 0.2
RATES: Final = (8.0, 20.0)  # of a sender, per second
ANSWERS_LOST: Final = 0.5  # of the absences: the answers to messages that arrived at the member are lost
HASTY: Final = 0.5  # of the simulations: the slow consumer has a large window
AT_NEAR: Final = 0.5  # of the simulations: it connects to the sender's node, in the others to a third one
RETURNS_MAX: Final = 2  # messages returned in one batch
LATE_NS: Final = 20_000_000  # between two batches
WINDOW_BYTES: Final = 1_000  # of the links: few messages may have arrived, the others are parked
LINK_LOST_NS: Final = 300_000_000  # until the crash of a member is noticed
PARKING_NS_MAX: Final = 3 * SECOND
TURN_NS: Final = SECOND // 20


class Absences(SenderLoad):
    """Senders at `near`, and a consumer at `far`, whose node crashes repeatedly.

    A slow consumer, at `near` or at a third node, connects when the timeout of the parked messages has passed.
    """

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
        self.taken_at = self.near
        others = [index for index in range(nodes) if index not in (self.near, self.far)]
        if others and self.answers.random() >= AT_NEAR:
            self.taken_at = self.answers.choice(others)

    def configure(self, index: int, config: NodeConfig) -> None:
        config.broker.addresses.append(address_of(PARCELS))
        config.settings.add(PARCELS, {"redistribution_delay_ms": -1, "redelivery_delay_ms": 0})
        assert config.cluster is not None
        for connection in config.cluster.cluster_connections:
            connection.producer_window_bytes = WINDOW_BYTES

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        near, far, taken_at = hosts[self.near], hosts[self.far], hosts[self.taken_at]
        per_second = self.random.choice(RATES)
        for number in range(2):
            self.senders.append(
                Sender(
                    self.world, self.network, f"ap{number}", near.name, self.ledger, PARCELS,
                    int(seconds * per_second), per_second,
                )
            )  # fmt: skip
        self.taker = SlowConsumer(self.world, self.network, "a-slow", taken_at.name, self.ledger)
        if self.answers.random() < HASTY:
            self.taker.credit_bytes = 20_000
        near.late = PARKED
        near.late_by_ns = LATE_NS
        self.distant = SlowConsumer(self.world, self.network, "a-far", far.name, self.ledger)
        self.takers.append(self.distant)
        self.world.at(SECOND, self._turn)

    # -- absences -------------------------------------------------------------------------------
    def _turn(self) -> None:
        """Starts the next phase: parking, an absence, or its end."""
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
            self.taker.kill()  # messages for its queue stay there
            near, far = self.hosts[self.near].name, self.hosts[self.far].name
            if self.answers.random() < ANSWERS_LOST:
                self.network.block(far, near)
            else:
                self.network.block(near, far)
        self.world.at(TURN_NS, self._turn)

    def _die(self) -> None:
        """Crashes `far`. The slow consumer connects before or after the timeout."""
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
        """Returns the number of messages that certainly have not arrived at `far`."""
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
        """Returns True if `near` knows of the consumer at `far`."""
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
    def repair(self) -> None:
        super().repair()
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
        self.ledger.check_acknowledged("ap", PARCELS)


class SlowConsumer(SimConsumer):
    """A slow consumer with a small window, so that its queue keeps messages."""

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger
    ) -> None:
        super().__init__(world, network, name, target, ledger, PARCELS)
        self.slowness_ns = self.random.choice((100_000_000, 400_000_000))
        self.credit_bytes = self.random.choice((1, 800))

