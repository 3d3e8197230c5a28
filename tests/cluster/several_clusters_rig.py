"""A node that is a member of two clusters."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.cluster.config import (
    ClusterConnectionConfig,
    ClusterSettings,
)
from atalanta.cluster.connection.cluster_connection import ClusterConnection
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.settings.broker_config import QueueConfig
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT, queue
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import Rig, node_of

WEST_PORT = 61617


def connection(name: str, own: str, peers: list[str], address: str) -> ClusterConnectionConfig:
    made = ClusterConnectionConfig(name, address, own)
    made.connection_ttl_ms = 6_000
    made.static = True
    made.static_connectors = peers or [own]
    return made


def only(*connections: ClusterConnectionConfig) -> Callable[[ClusterSettings], None]:
    def change(settings: ClusterSettings) -> None:
        for number in range(3):
            name = f"n{number}"
            settings.connectors[name] = ConnectorConfig(name, name, PORT)
        settings.connectors["n0west"] = ConnectorConfig("n0west", "n0", WEST_PORT)
        settings.cluster_connections[:] = connections

    return change


def orders(*sides: str) -> list[QueueConfig]:
    return [queue(f"{side}.orders", f"{side}.orders", ANYCAST) for side in sides]


def make(rig: Rig, east: str = "east", west: str = "west") -> list[Host]:
    """Both outer nodes know n0 by the acceptor of their own cluster; n0 knows nobody at first."""
    middle = only(connection("east", "n0", [], east), connection("west", "n0west", [], west))
    rig.node(whole=middle, doors={"east": PORT, "west": WEST_PORT}, queues=orders("east", "west"))
    rig.node(whole=only(connection("east", "n1", ["n0"], east)), queues=orders("east", "west"))
    rig.node(whole=only(connection("west", "n2", ["n0west"], west)), queues=orders("east", "west"))
    for host in rig.hosts:
        host.start()
    rig.until(lambda: all(ready(host) for host in rig.hosts))
    return rig.hosts


def clusters(host: Host) -> list[ClusterConnection]:
    found = node_of(host).clusters
    assert found is not None
    return found.connections


def ready(host: Host) -> bool:
    return all(
        cluster.peers and all(record.bindings.complete for record in cluster.peers.values())
        for cluster in clusters(host)
    )
