"""Subscribers of the topology: clients and peers connected to this node.

Before login a subscriber gets only the node's own entry. This is enough for the scanner of a real Artemis, which
never logs in. After login a subscriber gets all members and every change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.topology import Member

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster
    from atalanta.wire.connection import ClientConnection
    from atalanta.wire.core.packets.cluster import NodeAnnounce


class Subscribers:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.connections: dict[int, ClientConnection] = {}

    # -- from connections ---------------------------------------------------------------------------
    def subscribe(self, now: int, connection: ClientConnection, is_cluster: bool) -> None:
        self.cluster.dial_back.on_subscribe(connection.conn, is_cluster)
        if connection.authenticated:
            self.logged_in(now, connection)
        else:
            send(connection, self.cluster.own_member(), True)

    def logged_in(self, now: int, connection: ClientConnection) -> None:
        self.connections[connection.conn] = connection
        members = list(self.cluster.topology.members.values())
        for index, member in enumerate(members):
            send(connection, member, index == len(members) - 1)

    def unsubscribe(self, connection: ClientConnection) -> None:
        self.connections.pop(connection.conn, None)
        self.cluster.dial_back.on_closed(connection.conn)

    def announced(self, now: int, connection: ClientConnection, packet: NodeAnnounce) -> None:
        """Handles NODE_ANNOUNCE: adds the peer to the topology and notifies all subscribers."""
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

    # -- notifications --------------------------------------------------------------------------
    def tell(self, member: Member) -> None:
        for connection in list(self.connections.values()):
            send(connection, member, False)

    def tell_gone(self, node_id: str, event_id: int) -> None:
        for connection in list(self.connections.values()):
            connection.member_down(node_id, event_id)


def send(connection: ClientConnection, member: Member, last: bool) -> None:
    connection.member_up(
        member.node_id,
        member.event_id,
        member.primary,
        member.backup,
        last,
        member.backup_group,
        member.scale_down_group,
    )
