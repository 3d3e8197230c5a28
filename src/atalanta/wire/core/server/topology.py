"""Topology entries for a connection's peer, in the packet generation of its version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.core.packets.topology import (
    ClusterTopology,
    ClusterTopologyV2,
    ClusterTopologyV3,
    ClusterTopologyV4,
)
from atalanta.wire.core.server.session_creation import SERVER_VERSION

if TYPE_CHECKING:
    from atalanta.wire.core.server.connection import CoreConnection
    from atalanta.wire.core.transport import TransportConfiguration


def send_member(
    connection: CoreConnection,
    node_id: str,
    event_id: int,
    primary: TransportConfiguration | None,
    backup: TransportConfiguration | None,
    last: bool,
    backup_group: str | None,
    scale_down_group: str | None,
) -> None:
    """Sends one topology entry, in the generation of the peer's version."""
    packet: ClusterTopology
    if connection.version >= 131 or connection.version == 0:
        packet = ClusterTopologyV4(exit=False, node_id=node_id)
    else:
        packet = ClusterTopologyV3(exit=False, node_id=node_id)
    packet.event_id = event_id
    packet.primary = primary
    packet.backup = backup
    packet.last = last
    packet.backup_group = backup_group
    packet.scale_down_group = scale_down_group
    packet.server_version = SERVER_VERSION
    connection.send(packet, 0)


def send_member_gone(connection: CoreConnection, node_id: str, event_id: int) -> None:
    """Sends a leaving member in the second generation, as Artemis 2.44 does."""
    connection.send(ClusterTopologyV2(exit=True, node_id=node_id, event_id=event_id), 0)
