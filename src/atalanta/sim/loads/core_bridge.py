"""A core bridge from a queue of one node to an address of another: no loss, no duplicate, in order."""

from __future__ import annotations

from typing import Final

from atalanta.cluster import STRICT, CoreBridgeConfig
from atalanta.message import Message
from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.jobs import SimWatcher
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import PASSWORD, PORT, USER, Shape, address_of, machines_of
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.wire import ConnectorConfig

EXPORTS: Final = "exports"
IMPORTS: Final = "imports"
SHARE: Final = 0.25


class CoreBridgeLoad(SenderLoad):
    """The load: `exports` at one node, `imports` at another, a bridge between them.

    With scale-down there are two variants. In the first the target stays and every node has a bridge. The node that
    takes over `exports` forwards its messages. A message that the former node's bridge had sent without an answer must
    not arrive twice. In the second the source stays, the target may be scaled down, and the bridge follows it
    (docs/guide/bridges.md). The bridges of two nodes may then have different targets. Neither bridge knows the
    messages that the other one sent to its target.
    """

    def __init__(
        self, world: World, network: Network, ledger: Ledger, nodes: int, shape: Shape
    ) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("core bridges")
        self.source, self.target = self.random.sample(range(nodes), 2)
        self.target_machines = machines_of(self.target, shape)
        self.confirmation_bytes = self.random.choice((-1, 1_000, 1 << 20))
        self.may_block = shape.full_policy == "BLOCK"
        ends = world.random("core bridge ends")
        # If senders block on memory, messages for a target in scale-down may wait for the memory of its own target.
        self.follows = shape.departures and not self.may_block and ends.random() < 0.5
        self.everywhere = shape.departures and not self.follows
        # `imports` are at the node that took over from the target: unless they return, they need a consumer there.
        self.taken_everywhere = self.follows and shape.taken_everywhere()
        # One queue, used alternately with queues of the same name at other nodes.
        self.in_turn = self.everywhere and shape.mode == STRICT
        self.newest: dict[str, int] = {}
        self.seen: dict[str, bool] = {}

    def configure(self, index: int, config: NodeConfig) -> None:
        sends = index == self.source or self.everywhere
        receives = index == self.target or self.follows
        for here, name in ((sends, EXPORTS), (receives, IMPORTS)):
            if here:
                config.broker.addresses.append(address_of(name))
                # A redelivery after the next message would break the order.
                config.settings.add(name, {"redelivery_delay_ms": 0})
        if sends:
            bridge = CoreBridgeConfig(name="away", queue_name=EXPORTS, forwarding_address=IMPORTS)
            bridge.user = USER
            bridge.password = PASSWORD
            bridge.static_connectors = self.target_machines
            bridge.retry_interval_ms = 300
            if self.follows:
                # Another target does not know the last messages sent to the first one.
                bridge.reconnect_attempts_same_node = -1
            bridge.connection_ttl_ms = 6_000
            bridge.check_period_ms = 2_000
            if self.may_block:
                # Memory may be full at both ends; the cluster forwards in the other direction (docs/guide/bridges.md).
                bridge.producer_window_bytes = -1
            if self.confirmation_bytes > 0:
                bridge.confirmation_window_bytes = self.confirmation_bytes
            config.bridges.bridges.append(bridge)
            for target in self.target_machines:
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
                SimWatcher(
                    self.world, self.network, name, host.name, self.ledger, IMPORTS, self.arrived
                )
            )

    def arrived(self, message: Message) -> None:
        """Checks the order of each sender at the first delivery of a message."""
        key = str(message.properties.get("key"))
        if key in self.seen:
            return
        self.seen[key] = True
        sender, _, number = key.partition("/")
        newest = self.newest.get(sender, -1)
        if int(number) < newest and not self._may_mix():
            if key in self.ledger.refused:
                return  # what was sent after it was in `exports` before it
            raise Violation(f"the bridge delivered {key} after number {newest}", key)
        self.newest[sender] = int(number)

    def _may_mix(self) -> bool:
        """Returns True if order is not guaranteed: messages left at another node, or consumers at several nodes."""
        if self.follows:
            self.departed.look()
            return self.taken_everywhere or bool(self.departed.handovers)
        return self.in_turn or self.departed.moved_from(f"n{self.source}")

    def check(self) -> None:
        self.ledger.check_acknowledged("bp", IMPORTS)
