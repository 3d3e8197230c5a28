"""State of one peer over all its connections: its store-and-forward queue, its bindings and its bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.cluster.balancing.client_count import ClientCount
    from atalanta.cluster.connection.bridge import ClusterBridge
    from atalanta.cluster.connection.remote_bindings import RemoteBindings
    from atalanta.cluster.topology.topology import Member
    from atalanta.kernel.queue.queue import Queue
    from atalanta.wire.core.transport import TransportConfiguration


class PeerRecord:
    """A member with a primary connector."""

    def __init__(self, bindings: RemoteBindings) -> None:
        self.node_id: str = bindings.node_id
        self.forward: Queue = bindings.forward
        self.bindings = bindings
        self.bridge: ClusterBridge | None = None
        self.dialing: bool = False
        self.answered: bool = False  # a connection to it was open, if only for a moment
        self.lost_why: str = ""  # why the link was lost; reported
        self.member: Member | None = None
        self.target: TransportConfiguration | None = None  # the connector that was dialed last
        self.forwarded: int = 0
        self.confirmed: int = 0
        self.clients: ClientCount | None = None  # its last client count

    def dials(self, target: TransportConfiguration) -> None:
        """Records the connector that is dialed now."""
        self.dialing = True
        self.target = target

    def opened(self, bridge: ClusterBridge) -> None:
        """Records the bridge of a connection that is open."""
        self.dialing = False
        self.answered = True
        self.bridge = bridge

    def changed(self, member: Member) -> Member | None:
        """Records the member's last update. Returns the one before."""
        before = self.member
        self.member = member
        return before

    def leads_to(self, connector: TransportConfiguration) -> bool:
        """Returns whether the link, or the attempt to open it, is to that connector."""
        return self.target is not None and self.target.same_target(connector)

    def has_backup(self) -> bool:
        """Returns whether the member has a backup, which may take over when the member ends."""
        return self.member is not None and self.member.backup is not None

    def is_news(self, why: str) -> bool:
        """Records why the link was lost; "" when it is open. Returns whether the reason changed."""
        changed = self.lost_why != why
        self.lost_why = why
        return changed

    def linked(self) -> bool:
        """Returns whether the bridge to the peer is open. Then it is a member, whatever other nodes announce."""
        return self.bridge is not None and self.bridge.ready
