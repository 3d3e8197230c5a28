"""Whether the address that a node announces can be dialled by its peers.

Every member opens a link to every other. Who cannot reach a member says so (`member_unreachable`); and a member that is
linked to a peer, but sees no link come back, says which address of its own the peer may be unable to reach
(`not_dialed_back`). A locator proves nothing: it may know the node by another address than the one it announces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster
    from atalanta.cluster.connection.peer import PeerRecord

DIAL_BACK: Final = "dialback."
# A peer dials as soon as it hears of us, and again after its retry-interval (0.5 to 2 s).
WAIT_NS: Final = 15_000_000_000
ANNOUNCED_MAX: Final = 10_000
WHAT_TO_DO: Final = (
    "see whether that node can reach this address, and announce one that it can (connector-ref of the cluster"
    " connection); nothing is wrong if its own cluster connection only accepts, or names its direct connections"
)


class DialBack:
    """Of one cluster connection. `announced` is who opened a connection to us, `links` which of them are links."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.announced: dict[int, str] = {}  # connection -> node id
        self.links: dict[int, str] = {}
        self.missing: dict[str, bool] = {}  # told of: no link came back
        self.unreached: dict[str, bool] = {}  # told of: cannot be dialled

    # -- connections of others ------------------------------------------------------------------
    def on_announce(self, conn: int, node_id: str) -> None:
        """NODE_ANNOUNCE on a connection that was accepted."""
        if len(self.announced) < ANNOUNCED_MAX:
            self.announced[conn] = node_id

    def on_subscribe(self, conn: int, is_cluster: bool) -> None:
        """A locator subscribes as cluster, a link does not (fact sheet, "Handshake between two real nodes")."""
        node_id = self.announced.get(conn)
        if node_id is None or is_cluster:
            return
        self.links[conn] = node_id
        if self.missing.pop(node_id, None):
            self.cluster.broker.trace.event("dialed_back", {"node": node_id})

    def on_closed(self, conn: int) -> None:
        self.announced.pop(conn, None)
        self.links.pop(conn, None)

    # -- our own links --------------------------------------------------------------------------
    def on_link(self, now: int, record: PeerRecord) -> None:
        """A link of ours is open: one should come back."""
        self.unreached.pop(record.node_id, None)
        key = self.cluster.key(DIAL_BACK + record.node_id)
        self.cluster.broker.timers.set(key, now + WAIT_NS)

    def on_timer(self, now: int, node_id: str) -> None:
        record = self.cluster.peers.get(node_id)
        if record is None or not record.linked() or node_id in self.missing:
            return
        if node_id in self.links.values():
            return
        own = self.cluster.own_member().primary
        assert own is not None
        self.missing[node_id] = True
        self.cluster.broker.trace.event(
            "not_dialed_back",
            {
                "node": node_id,
                "announced": f"{own.host}:{own.port}",
                "seconds": WAIT_NS // 1_000_000_000,
                "what_to_do": WHAT_TO_DO,
            },
        )

    def on_unreachable(self, record: PeerRecord, why: str) -> None:
        """Told once, until a link to it is open."""
        member = record.member
        if member is None or member.primary is None or record.node_id in self.unreached:
            return
        self.unreached[record.node_id] = True
        at = f"{member.primary.host}:{member.primary.port}"
        self.cluster.broker.trace.event(
            "member_unreachable", {"node": record.node_id, "announced": at, "why": why}
        )

    def forget(self, node_id: str) -> None:
        """The node is no peer any more."""
        self.missing.pop(node_id, None)
        self.unreached.pop(node_id, None)
        self.cluster.broker.timers.cancel(self.cluster.key(DIAL_BACK + node_id))
