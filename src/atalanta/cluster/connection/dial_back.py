"""Check that the peers of a node can dial the address that it announces.

Every member opens a link to every other. A member that cannot reach another one records `member_unreachable`. A
member that is linked to a peer, but gets no link from it, records its own address that the peer may be unable to
reach (`not_dialed_back`). A locator proves nothing: it may use another address than the announced one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.topology.local_node import LocalNode
    from atalanta.cluster.topology.topology import Member

DIAL_BACK: Final = "dialback."
# A peer dials as soon as it gets our announcement, and again after its retry-interval (0.5 to 2 s).
WAIT_NS: Final = 15_000_000_000
ANNOUNCED_MAX: Final = 10_000
WHAT_TO_DO: Final = (
    "see whether that node can reach this address, and announce one that it can (connector-ref of the cluster"
    " connection); nothing is wrong if its own cluster connection only accepts, or names its direct connections"
)


class DialBack:
    """The check of one cluster connection: node ids of accepted connections, `links` of those that are links."""

    def __init__(self, local: LocalNode) -> None:
        self.local = local
        self.announced: dict[int, str] = {}  # connection -> node id
        self.links: dict[int, str] = {}
        self.missing: dict[str, bool] = {}  # reported: no link from it
        self.unreached: dict[str, bool] = {}  # reported: cannot be dialed

    # -- connections of others ------------------------------------------------------------------
    def on_announce(self, conn: int, node_id: str) -> None:
        """Handles NODE_ANNOUNCE on an accepted connection."""
        if len(self.announced) < ANNOUNCED_MAX:
            self.announced[conn] = node_id

    def on_subscribe(self, conn: int, is_cluster: bool) -> None:
        """Records that a connection is a link. A locator subscribes as cluster, a link does not."""
        node_id = self.announced.get(conn)
        if node_id is None or is_cluster:
            return
        self.links[conn] = node_id
        if self.missing.pop(node_id, None):
            self.local.trace.event("dialed_back", {"node": node_id})

    def on_closed(self, conn: int) -> None:
        self.announced.pop(conn, None)
        self.links.pop(conn, None)

    # -- our own links --------------------------------------------------------------------------
    def on_link(self, now: int, node_id: str) -> None:
        """Sets the timer for the peer's link after this node's link to it was opened."""
        self.unreached.pop(node_id, None)
        self.local.set_timer(DIAL_BACK + node_id, now + WAIT_NS)

    def on_timer(self, node_id: str) -> None:
        """Records `not_dialed_back` once, if there is no link from the peer. This node's link to it is open."""
        if node_id in self.missing or node_id in self.links.values():
            return
        own = self.local.member().primary
        assert own is not None
        self.missing[node_id] = True
        self.local.trace.event(
            "not_dialed_back",
            {
                "node": node_id,
                "announced": own.address,
                "seconds": WAIT_NS // 1_000_000_000,
                "what_to_do": WHAT_TO_DO,
            },
        )

    def on_unreachable(self, member: Member, why: str) -> None:
        """Records `member_unreachable` once, until a link to the member is open."""
        if member.primary is None or member.node_id in self.unreached:
            return
        self.unreached[member.node_id] = True
        at = member.primary.address
        self.local.trace.event(
            "member_unreachable", {"node": member.node_id, "announced": at, "why": why}
        )

    def forget(self, node_id: str) -> None:
        """Forgets a node that is not a peer any longer."""
        self.missing.pop(node_id, None)
        self.unreached.pop(node_id, None)
        self.local.cancel_timer(DIAL_BACK + node_id)
