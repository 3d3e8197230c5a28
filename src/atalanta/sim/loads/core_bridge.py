"""A core bridge from a queue of one node to an address of another: nothing is lost, nothing comes twice, in order."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.config import STRICT
from atalanta.cluster.core_bridges.config import BridgeConfig
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.settings.broker_config import AddressConfig
from atalanta.message.message import Message
from atalanta.node.config import NodeConfig
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.jobs import Watcher
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sending import Sending
from atalanta.sim.nodes import PASSWORD, PORT, USER, Shape, queue
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.wire.core.config import ConnectorConfig

EXPORTS: Final = "exports"
IMPORTS: Final = "imports"
SHARE: Final = 0.25


class CoreBridges(Sending):
    """`exports` at one node, `imports` at another, a bridge between them.

    Where nodes leave, one of two: the target stays, and there is a bridge at each node: whoever takes over `exports`
    brings them on, and what the bridge of the node before had sent without seeing the answer is no other message for
    it. Or the source stays, the target may leave, and the bridge follows it (docs/guide/bridges.md). Bridges of two
    nodes may be at different nodes then, and one does not know what the other sent there.
    """

    def __init__(
        self, world: World, network: Network, ledger: Ledger, nodes: int, shape: Shape
    ) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("core bridges")
        self.source, self.target = self.random.sample(range(nodes), 2)
        self.confirmation_bytes = self.random.choice((-1, 1_000, 1 << 20))
        self.may_block = shape.full_policy == "BLOCK"
        ends = world.random("core bridge ends")
        # Where senders wait for memory, what waits for a target that leaves may be what its own target waits for.
        self.follows = shape.departures and not self.may_block and ends.random() < 0.5
        self.everywhere = shape.departures and not self.follows
        # `imports` are where the target has left to: unless they go back somebody takes them there.
        self.taken_everywhere = self.follows and shape.taken_everywhere()
        # One queue in turn with those of the same name at other nodes.
        self.in_turn = self.everywhere and shape.mode == STRICT
        self.newest: dict[str, int] = {}
        self.seen: dict[str, bool] = {}

    def configure(self, index: int, config: NodeConfig) -> None:
        sends = index == self.source or self.everywhere
        receives = index == self.target or self.follows
        for here, name in ((sends, EXPORTS), (receives, IMPORTS)):
            if here:
                address = AddressConfig(name)
                address.add(queue(name, name, ANYCAST))
                config.broker.addresses.append(address)
                # What comes back later than the next message would break the order.
                config.settings.add(name, {"redelivery_delay_ms": 0})
        if sends:
            bridge = BridgeConfig(name="away", queue_name=EXPORTS, forwarding_address=IMPORTS)
            bridge.user = USER
            bridge.password = PASSWORD
            bridge.static_connectors = [f"n{self.target}"]
            bridge.retry_interval_ms = 300
            if self.follows:
                # Who else is the target has not heard of what it sent there last.
                bridge.reconnect_attempts_same_node = -1
            bridge.connection_ttl_ms = 6_000
            bridge.check_period_ms = 2_000
            if self.may_block:
                # Memory may be full at both ends, and messages of the cluster go the other way (docs/guide/bridges.md).
                bridge.producer_window_bytes = -1
            if self.confirmation_bytes > 0:
                bridge.confirmation_window_bytes = self.confirmation_bytes
            config.bridges.bridges.append(bridge)
            target = f"n{self.target}"
            config.bridges.connectors[target] = ConnectorConfig(target, target, PORT)

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        self.staying.append(hosts[self.source if self.follows else self.target].name)
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
        for host in hosts if self.taken_everywhere else [hosts[self.target]]:
            name = "importer" if host is hosts[self.target] else f"importer-{host.name}"
            self.takers.append(
                Watcher(
                    self.world, self.network, name, host.name, self.ledger, IMPORTS, self.arrived
                )
            )

    def arrived(self, message: Message) -> None:
        """First sight of each message in the order of its sender."""
        key = str(message.properties.get("key"))
        if key in self.seen:
            return
        self.seen[key] = True
        sender, _, number = key.partition("/")
        if int(number) < self.newest.get(sender, -1) and not self._may_mix():
            raise Violation(f"the bridge brought {key} after number {self.newest[sender]}", key)
        self.newest[sender] = int(number)

    def _may_mix(self) -> bool:
        """What one of them left at another node takes another way; as do messages for consumers at several nodes."""
        if self.follows:
            self.departed.look()
            return self.taken_everywhere or bool(self.departed.handovers)
        return self.in_turn or self.departed.moved_from(f"n{self.source}")

    def check(self) -> None:
        for key in self.ledger.confirmed:
            if key.startswith("bp") and (IMPORTS, key) not in self.ledger.acknowledging:
                raise Violation(f"confirmed message lost: the bridge never brought {key}", key)
