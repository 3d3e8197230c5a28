"""The members of a cluster as a client knows them (Artemis' Topology)."""

from __future__ import annotations

from dataclasses import dataclass

from atalanta.wire.core.packets.topology import ClusterTopology


@dataclass(frozen=True)
class Member:
    """A node. Host and port are None if it has no connector; `event_id` is in milliseconds."""

    node_id: str
    host: str | None
    port: int | None
    backup_host: str | None = None
    backup_port: int | None = None
    event_id: int = 0


def apply_topology(members: dict[str, Member], packet: ClusterTopology, anew: bool = False) -> bool:
    """Applies a topology packet; returns True if `members` changed. An older event of a node is ignored.

    `anew`: it is the first one of the node on a connection, and counts whatever its number. A broker that was deposed
    and did not know it yet may have told this client, and nobody else, of itself with a higher number.
    """
    known = members.get(packet.node_id)
    if packet.exit:
        if known is None or known.event_id > packet.event_id > 0:
            return False
        del members[packet.node_id]
        return True
    primary = packet.primary
    backup = packet.backup
    if known is not None and not anew and packet.event_id <= known.event_id:
        if primary is None or known.host is not None:
            return False
    host: str | None = None
    port: int | None = None
    if primary is not None:
        host, port = primary.host, primary.port
    elif known is not None:
        host, port = known.host, known.port
    backup_host: str | None = None
    backup_port: int | None = None
    if backup is not None:
        backup_host, backup_port = backup.host, backup.port
    elif known is not None:
        backup_host, backup_port = known.backup_host, known.backup_port
    event_id = packet.event_id if known is None or anew else max(known.event_id, packet.event_id)
    member = Member(packet.node_id, host, port, backup_host, backup_port, event_id)
    members[packet.node_id] = member
    return member != known
