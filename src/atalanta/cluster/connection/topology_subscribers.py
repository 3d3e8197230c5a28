"""Who wants to hear the topology: clients and peers connected to this node.

Before login a subscriber gets the node's own entry alone; a real Artemis' scanner never logs in and is content with it
(fact sheet A1.b). After login it gets everything, and every change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.topology import Member
from atalanta.wire.core.server.topology import send_member, send_member_gone

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster
    from atalanta.wire.core.packets.cluster import NodeAnnounce
    from atalanta.wire.core.server.connection import CoreConnection


class Subscribers:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.connections: dict[int, CoreConnection] = {}

    # -- from connections ---------------------------------------------------------------------------
    def subscribe(self, now: int, connection: CoreConnection, is_cluster: bool) -> None:
        self.cluster.dial_back.on_subscribe(connection.conn, is_cluster)
        if connection.authenticated:
            self.logged_in(now, connection)
        else:
            send(connection, self.cluster.own_member(), True)

    def logged_in(self, now: int, connection: CoreConnection) -> None:
        self.connections[connection.conn] = connection
        members = list(self.cluster.topology.members.values())
        for index, member in enumerate(members):
            send(connection, member, index == len(members) - 1)

    def unsubscribe(self, connection: CoreConnection) -> None:
        self.connections.pop(connection.conn, None)
        self.cluster.dial_back.on_closed(connection.conn)

    def announced(self, now: int, connection: CoreConnection, packet: NodeAnnounce) -> None:
        """NODE_ANNOUNCE: the peer enters the topology, and everybody is told."""
        self.cluster.dial_back.on_announce(connection.conn, packet.node_id)
        news = Member(
            packet.node_id,
            packet.event_id,
            None if packet.is_backup else packet.connector,
            packet.backup_connector if not packet.is_backup else packet.connector,
            packet.backup_group,
            packet.scale_down_group,
        )
        self.cluster.members.news(now, news)

    # -- telling --------------------------------------------------------------------------------
    def tell(self, member: Member) -> None:
        for connection in list(self.connections.values()):
            send(connection, member, False)

    def tell_gone(self, node_id: str, event_id: int) -> None:
        for connection in list(self.connections.values()):
            send_member_gone(connection, node_id, event_id)


def send(connection: CoreConnection, member: Member, last: bool) -> None:
    send_member(
        connection,
        member.node_id,
        member.event_id,
        member.primary,
        member.backup,
        last,
        member.backup_group,
        member.scale_down_group,
    )
