"""A core bridge from a queue of one node to an address of another: nothing is lost, nothing comes twice, in order."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.core_bridge_config import BridgeConfig
from atalanta.kernel.config import AddressConfig
from atalanta.kernel.queue_spec import ANYCAST
from atalanta.node import NodeConfig
from atalanta.sim.host import Host
from atalanta.sim.jobs import Consumer
from atalanta.sim.ledger import Ledger, Violation
from atalanta.sim.network import Network
from atalanta.sim.nodes import PASSWORD, PORT, USER, queue
from atalanta.sim.senders import Sender
from atalanta.sim.subject import Subject
from atalanta.sim.world import World
from atalanta.wire.core.config import ConnectorConfig
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_message import ReceiveMessage

EXPORTS: Final = "exports"
IMPORTS: Final = "imports"
SHARE: Final = 0.25
ROOM_BYTES: Final = 100 << 20


class CoreBridges(Subject):
    """`exports` at one node, `imports` at another, a bridge between them."""

    def __init__(self, world: World, network: Network, ledger: Ledger, nodes: int) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("core bridges")
        self.source, self.target = self.random.sample(range(nodes), 2)
        self.confirmation_bytes = self.random.choice((-1, 1_000, 1 << 20))
        self.newest: dict[str, int] = {}
        self.seen: dict[str, bool] = {}

    def configure(self, index: int, config: NodeConfig) -> None:
        for place, name in ((self.source, EXPORTS), (self.target, IMPORTS)):
            if index == place:
                address = AddressConfig(name)
                address.add(queue(name, name, ANYCAST))
                config.broker.addresses.append(address)
                # What comes back later than the next message would break the order.
                config.settings.add(name, {"redelivery_delay_ms": 0})
        if index == self.target:
            # With full memory (BLOCK) at both ends a bridge one way and messages of the cluster the other way wait for
            # each other for ever, as between any two brokers: one end has room.
            config.broker.global_max_size_bytes = max(
                ROOM_BYTES, config.broker.global_max_size_bytes
            )
        if index == self.source:
            bridge = BridgeConfig(name="away", queue_name=EXPORTS, forwarding_address=IMPORTS)
            bridge.user = USER
            bridge.password = PASSWORD
            bridge.static_connectors = [f"n{self.target}"]
            bridge.retry_interval_ms = 300
            bridge.connection_ttl_ms = 6_000
            bridge.check_period_ms = 2_000
            if self.confirmation_bytes > 0:
                bridge.confirmation_window_bytes = self.confirmation_bytes
            config.bridges.bridges.append(bridge)
            target = f"n{self.target}"
            config.bridges.connectors[target] = ConnectorConfig(target, target, PORT)

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        per_second = self.random.choice((1.0, 3.0))
        total = max(4, int(seconds * per_second))
        for number in range(2):
            self.senders.append(
                Sender(
                    self.world,
                    self.network,
                    f"bp{number}",
                    hosts[self.source].name,
                    self.ledger,
                    EXPORTS,
                    total,
                    per_second,
                )
            )
        self.takers.append(
            Importer(self.world, self.network, "importer", hosts[self.target].name, self)
        )

    def mend(self) -> None:
        super().mend()
        for sender in self.senders:
            if isinstance(sender, Sender):
                sender.finish()

    def left(self) -> list[str]:
        return [
            f"{sender.name} waits for {list(sender.open)}"
            for sender in self.senders
            if isinstance(sender, Sender) and sender.open
        ]

    def arrive(self, key: str) -> None:
        """First sight of each message in the order of its sender."""
        if key in self.seen:
            return
        self.seen[key] = True
        sender, _, number = key.partition("/")
        if int(number) < self.newest.get(sender, -1):
            raise Violation(f"the bridge brought {key} after number {self.newest[sender]}", key)
        self.newest[sender] = int(number)

    def check(self) -> None:
        for key in self.ledger.confirmed:
            if key.startswith("bp") and (IMPORTS, key) not in self.ledger.acknowledging:
                raise Violation(f"confirmed message lost: the bridge never brought {key}", key)


class Importer(Consumer):
    """Takes what the bridge brings."""

    def __init__(
        self, world: World, network: Network, name: str, target: str, subject: CoreBridges
    ) -> None:
        super().__init__(world, network, name, target, subject.ledger, IMPORTS)
        self.subject = subject

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, ReceiveMessage):
            self.subject.arrive(str(packet.message.properties.get("key")))
        super().on_packet(packet)
