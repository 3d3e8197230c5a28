"""Management view of client balancing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.management.resources.client_balance import ClientBalance

if TYPE_CHECKING:
    from atalanta.cluster.balancing.balancers import Balancers
    from atalanta.cluster.balancing.rebalance import Rebalance


class BalanceView(ClientBalance):
    """Management view of client balancing on this node, for the cluster connection of the caller's acceptor."""

    def __init__(self, balancers: Balancers) -> None:
        self.balancers = balancers

    def describe(self, now: int, exactly: bool, connection: int) -> dict[str, object]:
        rebalance = self.balancers.of(connection)
        rebalance.count(now, connection)
        places = rebalance.places(now)
        members: list[dict[str, object]] = []
        for place in places:
            members.append(
                {
                    "node": place.node_id,
                    "zone": place.zone,
                    "clients": place.clients,
                    "at": address(rebalance, place.node_id),
                }
            )
        moves: list[dict[str, object]] = []
        for node_id, count in rebalance.moves(now, places, exactly):
            able = len(rebalance.redirects.candidates(now, node_id, count))
            moves.append(
                {"node": node_id, "at": address(rebalance, node_id), "clients": count, "able": able}
            )
        return {
            "node": rebalance.broker.node_id,
            "cluster": rebalance.cluster.config.name,
            "zone": rebalance.own.zone,
            "clients": rebalance.clients,
            "on": rebalance.own.rebalance,
            "members": members,
            "moves": moves,
            "moving": len(rebalance.redirects.pending) + len(rebalance.redirects.sent),
            "waits": rebalance.waits_for(now),
            "stay": rebalance.obstacles(now, connection),
            "sent": rebalance.sent_in_all,
        }

    def ask(self, now: int, connection: int) -> None:
        self.balancers.of(connection).ask(now)


def address(rebalance: Rebalance, node_id: str) -> str | None:
    """Returns the member's host:port for clients, None if it is not known."""
    member = rebalance.cluster.topology.members.get(node_id)
    if member is None or member.primary is None:
        return None
    return f"{member.primary.host}:{member.primary.port}"
