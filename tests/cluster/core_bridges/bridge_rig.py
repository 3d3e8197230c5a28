"""Nodes of their own, without any cluster, and core bridges between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atalanta.cluster.core_bridges.bridge import CoreBridge
from atalanta.cluster.core_bridges.config import CoreBridgeConfig, CoreBridgeSettings
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.settings.broker_config import QueueConfig
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import Node
from atalanta.sim.host import Host
from atalanta.sim.nodes import PASSWORD, PORT, USER, Shape, node_config, queue
from atalanta.sim.world.network import Machine
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import Rig, TappedNetwork, addresses, node_of


def bridge(name: str = "away", **values: Any) -> CoreBridgeConfig:
    """From `orders` to the address `inbox` at n1, with quick retries."""
    config = CoreBridgeConfig(name=name, queue_name="orders", forwarding_address="inbox")
    config.user = USER
    config.password = PASSWORD
    config.static_connectors = ["n1"]
    config.retry_interval_ms = 500
    config.connection_ttl_ms = 6_000
    for key, value in values.items():
        assert hasattr(config, key), key
        setattr(config, key, value)
    return config


def source_queues() -> list[QueueConfig]:
    return [queue("orders", "orders", ANYCAST), queue("archive", "prices", MULTICAST)]


def target_queues() -> list[QueueConfig]:
    return [queue("inbox", "inbox", ANYCAST), queue("news", "news", MULTICAST)]


class DialNetwork(TappedNetwork):
    """Remembers who was dialled when."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.dialled: list[tuple[str, int]] = []

    def dial(self, source: Machine, key: str, host: str, port: int) -> None:
        self.dialled.append((host, self.world.now))
        super().dial(source, key, host, port)


class BridgeRig(Rig):
    """n0, n1 …; connectors to all of them are known to each."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        network = DialNetwork(self.world)
        network.latency_ns = self.network.latency_ns
        self.network: DialNetwork = network

    def dials(self, name: str) -> int:
        """Returns how often the machine of that name was dialled."""
        return len(self.dial_times(name))

    def dial_times(self, name: str) -> list[float]:
        """When, in seconds of the virtual world."""
        return [at / SECOND for host, at in self.network.dialled if host == name]

    def single(
        self,
        *bridges: CoreBridgeConfig,
        queues: list[QueueConfig] | None = None,
        change: Callable[[NodeConfig], None] | None = None,
        own: CoreBridgeSettings | None = None,
        memory_bytes: int = 100 << 20,
    ) -> Host:
        """A started node; the first has the source's queues, all others the target's."""
        index = len(self.hosts)
        chosen = queues or (target_queues() if index else source_queues())
        shape = Shape()
        shape.memory_bytes = memory_bytes

        def make(ports: Ports) -> Node:
            config = node_config(index, shape, None, addresses(chosen))
            config.bridges = own or CoreBridgeSettings()
            config.bridges.bridges = list(bridges)
            config.bridges.connectors = {
                f"n{number}": ConnectorConfig(f"n{number}", f"n{number}", PORT)
                for number in range(5)
            }
            if change is not None:
                change(config)
            return Node(config, ports)

        host = Host(self.world, self.network, f"n{index}", f"n{index}", PORT, make)
        self.hosts.append(host)
        host.start()
        return host

    def pair(self, *bridges: CoreBridgeConfig, **options: Any) -> tuple[Host, Host]:
        """A source with these bridges and a target, connected."""
        source = self.single(*bridges, **options)
        target = self.single()
        self.until(lambda: all(connected(source, config.name) for config in bridges))
        return source, target


def bridge_of(host: Host, name: str = "away") -> CoreBridge:
    return node_of(host).bridges.by_name[name]


def connected(host: Host, name: str = "away") -> bool:
    link = bridge_of(host, name).link
    return link is not None and link.connected
