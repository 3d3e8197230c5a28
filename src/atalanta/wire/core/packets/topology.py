"""Packets of the cluster's topology, channel 0.

The four generations of CLUSTER_TOPOLOGY (ClusterTopologyChangeMessage, _V2, _V3, _V4) are read and written by hand,
because the fields depend on `exit` too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.message.quick_dataclass import mutable_dataclass
from atalanta.wire.core.packet_types import (
    CLUSTER_TOPOLOGY,
    CLUSTER_TOPOLOGY_V2,
    CLUSTER_TOPOLOGY_V3,
    CLUSTER_TOPOLOGY_V4,
    SUBSCRIBE_TOPOLOGY,
    SUBSCRIBE_TOPOLOGY_V2,
)
from atalanta.wire.core.packets.base import BOOL, INT32, Packet, numbered, wire
from atalanta.wire.core.transport import TransportConfiguration, decode_transport, encode_transport


@mutable_dataclass(eq=False, repr=False)
class SubscribeTopology(Packet):
    """SUBSCRIBE_TOPOLOGY: the server answers with the topology, and sends every change of it."""

    is_cluster_connection: bool = field(default=False, metadata=wire(BOOL))


@mutable_dataclass(eq=False, repr=False)
class SubscribeTopologyV2(SubscribeTopology):
    """SUBSCRIBE_TOPOLOGY_V2: also has the protocol version of the connection."""

    client_version: int = field(default=136, metadata=wire(INT32))


@mutable_dataclass(eq=False, repr=False)
class ClusterTopology(Packet):
    """CLUSTER_TOPOLOGY (versions below 122): one member. With `exit` it left and has no connectors.

    `last` marks the end of the first list of members. `event_id` is in milliseconds. The later generations have the
    same attributes and write more of them.
    """

    exit: bool
    node_id: str
    event_id: int = 0
    primary: TransportConfiguration | None = None
    backup: TransportConfiguration | None = None
    last: bool = False
    backup_group: str | None = None
    scale_down_group: str | None = None
    server_version: int = 0


@dataclass(eq=False, repr=False, init=False)
class ClusterTopologyV2(ClusterTopology):
    """CLUSTER_TOPOLOGY_V2: adds event_id and backup_group. Artemis 2.44 sends leaving members in this form."""


@dataclass(eq=False, repr=False, init=False)
class ClusterTopologyV3(ClusterTopology):
    """CLUSTER_TOPOLOGY_V3: adds scale_down_group."""


@dataclass(eq=False, repr=False, init=False)
class ClusterTopologyV4(ClusterTopology):
    """CLUSTER_TOPOLOGY_V4 (from version 131): adds server_version."""


PACKETS: Final = numbered(
    {SUBSCRIBE_TOPOLOGY: SubscribeTopology, SUBSCRIBE_TOPOLOGY_V2: SubscribeTopologyV2}
)
numbered(
    {
        CLUSTER_TOPOLOGY: ClusterTopology,
        CLUSTER_TOPOLOGY_V2: ClusterTopologyV2,
        CLUSTER_TOPOLOGY_V3: ClusterTopologyV3,
        CLUSTER_TOPOLOGY_V4: ClusterTopologyV4,
    }
)


def generation(code: int) -> int:
    """Returns 1 to 4, by packet type; 0 for other packets."""
    if code == CLUSTER_TOPOLOGY_V4:
        return 4
    if code == CLUSTER_TOPOLOGY_V2:
        return 2
    if code == CLUSTER_TOPOLOGY_V3:
        return 3
    return 1 if code == CLUSTER_TOPOLOGY else 0


def decode_topology(reader: Reader, number: int) -> ClusterTopology:
    """Decodes a topology packet. DecodeError names the field."""
    leaving = reader.boolean("exit")
    node_id = reader.string("node_id")
    packet: ClusterTopology
    if number == 1:
        packet = ClusterTopology(exit=leaving, node_id=node_id)
    elif number == 2:
        packet = ClusterTopologyV2(exit=leaving, node_id=node_id)
    elif number == 3:
        packet = ClusterTopologyV3(exit=leaving, node_id=node_id)
    else:
        packet = ClusterTopologyV4(exit=leaving, node_id=node_id)
    if number >= 2:
        packet.event_id = reader.int64("event_id")
    if not leaving:
        packet.primary = nullable_transport(reader, "primary")
        packet.backup = nullable_transport(reader, "backup")
        packet.last = reader.boolean("last")
    # The oldest V2 peers end the packet before the group.
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
