"""Configurations for simulated clusters: N alike nodes with distributed queues, one with an extra subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
from atalanta.kernel.config import AddressConfig, BrokerConfig, QueueConfig
from atalanta.kernel.queue_spec import ANYCAST, MULTICAST
from atalanta.kernel.security import Security
from atalanta.kernel.settings import AddressSettingsRepository
from atalanta.node import Node, NodeConfig, Ports
from atalanta.sim.host import Host
from atalanta.sim.network import Network
from atalanta.sim.world import World
from atalanta.store.config import JournalConfig
from atalanta.wire.core.config import ConnectorConfig

PORT: Final = 61616
CLUSTER_USER: Final = "cluster"
CLUSTER_PASSWORD: Final = "secret"
USER: Final = "user"
PASSWORD: Final = "password"
ORDERS: Final = "orders"
PRICES: Final = "prices"
ARCHIVE: Final = "archive"
ALERTS: Final = "alerts"


def queue(
    name: str, address: str, routing_type: int, filter_text: str | None = None
) -> QueueConfig:
    made = QueueConfig()
    made.name = name
    made.address = address
    made.routing_type = routing_type
    made.filter_text = filter_text
    return made


def addresses(index: int) -> list[AddressConfig]:
    """`orders` anycast; `prices` multicast with `archive` everywhere and a filtered `alerts` on the first node only."""
    orders = AddressConfig(ORDERS)
    orders.add(queue(ORDERS, ORDERS, ANYCAST))
    prices = AddressConfig(PRICES)
    prices.add(queue(ARCHIVE, PRICES, MULTICAST))
    if index == 0:
        prices.add(queue(ALERTS, PRICES, MULTICAST, "alert = TRUE"))
    return [orders, prices]


def cluster_settings(index: int, count: int) -> ClusterSettings:
    settings = ClusterSettings()
    settings.cluster_user = CLUSTER_USER
    settings.cluster_password = CLUSTER_PASSWORD
    for number in range(count):
        settings.connectors[f"n{number}"] = ConnectorConfig(f"n{number}", f"n{number}", PORT)
    connection = ClusterConnectionConfig()
    connection.name = "sim"
    connection.connector = f"n{index}"
    connection.static = True
    connection.static_connectors = [f"n{number}" for number in range(count) if number != index]
    connection.connection_ttl_ms = 6_000
    settings.cluster_connections.append(connection)
    return settings


def node_maker(index: int, count: int, segment_bytes: int) -> Callable[[Ports], Node]:
    """Makes the node anew at each start, as a restarted process would."""

    def make(ports: Ports) -> Node:
        broker = BrokerConfig()
        broker.name = f"n{index}"
        broker.addresses = addresses(index)
        settings = AddressSettingsRepository()
        settings.add("#", {"redistribution_delay_ms": 200})
        security = Security(True, CLUSTER_USER, CLUSTER_PASSWORD)
        security.add_user(USER, PASSWORD, ("all",))
        security.add_rule(
            "#",
            {
                name: ("all",)
                for name in (
                    "send",
                    "consume",
                    "browse",
                    "createDurableQueue",
                    "createAddress",
                    "manage",
                )
            },
        )
        journal = JournalConfig(
            bytes([index]) * 16, segment_bytes, compact_min_segments=2, compact_percentage=50
        )
        cluster = cluster_settings(index, count) if count > 1 else None
        return Node(
            NodeConfig(f"node-{index}", broker, settings, security, journal, [], cluster), ports
        )

    return make


def make_hosts(world: World, network: Network, count: int) -> list[Host]:
    segment_bytes = world.random("nodes").choice((8_192, 32_768, 131_072))
    return [
        Host(
            world, network, f"n{index}", f"n{index}", PORT, node_maker(index, count, segment_bytes)
        )
        for index in range(count)
    ]
