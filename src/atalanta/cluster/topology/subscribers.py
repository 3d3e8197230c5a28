"""Subscribers of the topology: clients and peers connected to this node.

Before login a subscriber gets only the node's own entry. This is enough for the scanner of a real Artemis, which
never logs in. After login a subscriber gets all members and every change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.cluster.topology.local_node import LocalNode
    from atalanta.cluster.topology.topology import Member, Topology
    from atalanta.wire.connection import ClientConnection


class TopologySubscribers:
    """The subscribers of one cluster connection, by connection id."""

    def __init__(self, local: LocalNode, topology: Topology) -> None:
        self.local = local
        self.topology = topology
        self.connections: dict[int, ClientConnection] = {}

    # -- from connections ---------------------------------------------------------------------------
    def add(self, connection: ClientConnection) -> None:
        """Adds a subscriber. Before its login it gets this node's own entry only."""
        if connection.authenticated:
            self.logged_in(connection)
        else:
            send(connection, self.local.member(), True)

    def logged_in(self, connection: ClientConnection) -> None:
        """Sends all members to a subscriber."""
        self.connections[connection.conn] = connection
        members = list(self.topology.members.values())
        for index, member in enumerate(members):
            send(connection, member, index == len(members) - 1)

    def remove(self, connection: ClientConnection) -> None:
        self.connections.pop(connection.conn, None)

    # -- changes --------------------------------------------------------------------------------
    def send_member(self, member: Member) -> None:
        """Sends a new or changed member to all subscribers."""
        for connection in list(self.connections.values()):
            send(connection, member, False)

    def send_removal(self, node_id: str, event_id: int) -> None:
        """Sends the removal of a member to all subscribers. A node that stops or leaves says so of itself only."""
        broker = self.local.host.broker
        if broker.stopping:
            return
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
