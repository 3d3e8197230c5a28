"""Packets that spread who is a member of the cluster, channel 0 (fact sheet A1.b)."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.core.types import (
    CLUSTER_TOPOLOGY,
    CLUSTER_TOPOLOGY_V2,
    CLUSTER_TOPOLOGY_V3,
    CLUSTER_TOPOLOGY_V4,
    SUBSCRIBE_TOPOLOGY,
    SUBSCRIBE_TOPOLOGY_V2,
)


class SubscribeTopology(Packet):
    """SUBSCRIBE_TOPOLOGY. The server answers with the topology and goes on telling changes."""

    type: ClassVar[int] = SUBSCRIBE_TOPOLOGY
    layout: ClassVar[str] = "is_cluster_connection bool"

    def __init__(self, is_cluster_connection: bool = False) -> None:
        self.is_cluster_connection: bool = is_cluster_connection


class SubscribeTopologyV2(SubscribeTopology):
    """SUBSCRIBE_TOPOLOGY_V2. Also tells the server the version of the connection."""

    type: ClassVar[int] = SUBSCRIBE_TOPOLOGY_V2
    layout: ClassVar[str] = "is_cluster_connection bool, client_version i32"

    def __init__(self, is_cluster_connection: bool = False, client_version: int = 136) -> None:
        super().__init__(is_cluster_connection)
        self.client_version: int = client_version


class ClusterTopology(Packet):
    """CLUSTER_TOPOLOGY (versions below 122): one member; with `exit` it left and has no connectors.

    `last` marks the end of the first dump, `event_id` is in milliseconds. The later generations
    have the same attributes and put more of them on the wire.
    """

    type: ClassVar[int] = CLUSTER_TOPOLOGY
    layout: ClassVar[str] = (
        "exit bool, node_id str, event_id i64, primary tc?, backup tc?, last bool, "
        "backup_group str?, scale_down_group str?, server_version i32"
    )

    def __init__(
        self,
        exit: bool,
        node_id: str,
        event_id: int = 0,
        primary: TransportConfiguration | None = None,
        backup: TransportConfiguration | None = None,
        last: bool = False,
        backup_group: str | None = None,
        scale_down_group: str | None = None,
        server_version: int = 0,
    ) -> None:
        self.exit: bool = exit
        self.node_id: str = node_id
        self.event_id: int = event_id
        self.primary: TransportConfiguration | None = primary
        self.backup: TransportConfiguration | None = backup
        self.last: bool = last
        self.backup_group: str | None = backup_group
        self.scale_down_group: str | None = scale_down_group
        self.server_version: int = server_version


class ClusterTopologyV2(ClusterTopology):
    """CLUSTER_TOPOLOGY_V2: and event_id, backup_group. Artemis 2.44 tells leaving in this form."""

    type: ClassVar[int] = CLUSTER_TOPOLOGY_V2


class ClusterTopologyV3(ClusterTopology):
    """CLUSTER_TOPOLOGY_V3: and scale_down_group."""

    type: ClassVar[int] = CLUSTER_TOPOLOGY_V3


class ClusterTopologyV4(ClusterTopology):
    """CLUSTER_TOPOLOGY_V4 (from version 131): and server_version."""

    type: ClassVar[int] = CLUSTER_TOPOLOGY_V4


PACKETS: Final[list[type[Packet]]] = [SubscribeTopology, SubscribeTopologyV2]
