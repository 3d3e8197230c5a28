"""State of one peer over all its connections: its store-and-forward queue, its bindings and its bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.cluster.balancing.client_count import ClientCount
    from atalanta.cluster.connection.bridge import Bridge
    from atalanta.cluster.connection.remote_bindings import RemoteBindings
    from atalanta.cluster.topology.topology import Member
    from atalanta.kernel.queue.queue import Queue


class PeerRecord:
    """A member with a primary connector."""

    def __init__(self, bindings: RemoteBindings) -> None:
        self.node_id: str = bindings.node_id
        self.forward: Queue = bindings.forward
        self.bindings = bindings
        self.bridge: Bridge | None = None
        self.dialing: bool = False
        self.lost_why: str = ""  # why the link was lost; reported
        self.member: Member | None = None
        self.forwarded: int = 0
        self.confirmed: int = 0
        self.clients: ClientCount | None = None  # its last client count

    def is_news(self, why: str) -> bool:
        """Records why the link was lost; "" when it is open. Returns whether the reason changed."""
        changed = self.lost_why != why
        self.lost_why = why
        return changed

    def linked(self) -> bool:
        """Tells if the bridge to the peer is open. Then it is a member, whatever other nodes announce."""
        return self.bridge is not None and self.bridge.ready
