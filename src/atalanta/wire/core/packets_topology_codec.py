"""The four generations of CLUSTER_TOPOLOGY (ClusterTopologyChangeMessage, _V2, _V3, _V4)."""

from __future__ import annotations

from atalanta.kernel.buffer import Reader, Writer
from atalanta.wire.core.packets_topology import (
    ClusterTopology,
    ClusterTopologyV2,
    ClusterTopologyV3,
    ClusterTopologyV4,
)
from atalanta.wire.core.transport import TransportConfiguration, decode_transport, encode_transport
from atalanta.wire.core.types import (
    CLUSTER_TOPOLOGY,
    CLUSTER_TOPOLOGY_V2,
    CLUSTER_TOPOLOGY_V3,
    CLUSTER_TOPOLOGY_V4,
)


def generation(code: int) -> int:
    """1 to 4, by packet type; 0 for other packets."""
    if code == CLUSTER_TOPOLOGY_V4:
        return 4
    if code == CLUSTER_TOPOLOGY_V2:
        return 2
    if code == CLUSTER_TOPOLOGY_V3:
        return 3
    return 1 if code == CLUSTER_TOPOLOGY else 0


def decode_topology(reader: Reader, number: int) -> ClusterTopology:
    """DecodeError names the field."""
    leaving = reader.boolean("exit")
    node_id = reader.string("node_id")
    packet: ClusterTopology
    if number == 1:
        packet = ClusterTopology(leaving, node_id)
    elif number == 2:
        packet = ClusterTopologyV2(leaving, node_id)
    elif number == 3:
        packet = ClusterTopologyV3(leaving, node_id)
    else:
        packet = ClusterTopologyV4(leaving, node_id)
    if number >= 2:
        packet.event_id = reader.int64("event_id")
    if not leaving:
        packet.primary = nullable_transport(reader, "primary")
        packet.backup = nullable_transport(reader, "backup")
        packet.last = reader.boolean("last")
    # The oldest V2 peers end before the group.
    if number >= 2 and reader.position < reader.end:
        packet.backup_group = reader.nullable_string("backup_group")
    if number >= 3:
        packet.scale_down_group = reader.nullable_string("scale_down_group")
    if number >= 4:
        packet.server_version = reader.int32("server_version")
    return packet


def nullable_transport(reader: Reader, what: str) -> TransportConfiguration | None:
    return decode_transport(reader, what) if reader.boolean(what) else None


def encode_topology(writer: Writer, packet: ClusterTopology, number: int) -> None:
    writer.boolean(packet.exit)
    writer.string(packet.node_id)
    if number >= 2:
        writer.int64(packet.event_id)
    if not packet.exit:
        for transport in (packet.primary, packet.backup):
            writer.boolean(transport is not None)
            if transport is not None:
                encode_transport(writer, transport)
        writer.boolean(packet.last)
    if number >= 2:
        writer.nullable_string(packet.backup_group)
    if number >= 3:
        writer.nullable_string(packet.scale_down_group)
    if number >= 4:
        writer.int32(packet.server_version)
