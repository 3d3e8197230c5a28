"""What an operator sees of the balance of clients, and his wish to have it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.management_balance import Balance

if TYPE_CHECKING:
    from atalanta.cluster.rebalance import Rebalance


class BalanceView(Balance):
    """Of one node: what it knows, what it would do."""

    def __init__(self, rebalance: Rebalance) -> None:
        self.rebalance = rebalance

    def describe(self, now: int, exactly: bool, asking: int) -> dict[str, object]:
        rebalance = self.rebalance
        rebalance.count(now, asking)
        places = rebalance.places(now)
        members: list[dict[str, object]] = []
        for place in places:
            members.append(
                {
                    "node": place.node_id,
                    "zone": place.zone,
                    "clients": place.clients,
                    "at": self._address(place.node_id),
                }
            )
        moves: list[dict[str, object]] = []
        for node_id, count in rebalance.moves(now, places, exactly):
            able = len(rebalance.departures.candidates(now, node_id, count, False))
            able += len(rebalance.departures.candidates(now, node_id, count - able, True))
            moves.append(
                {"node": node_id, "at": self._address(node_id), "clients": count, "able": able}
            )
        return {
            "node": rebalance.broker.node_id,
            "zone": rebalance.own.zone,
            "clients": rebalance.clients,
            "on": rebalance.own.rebalance,
            "members": members,
            "moves": moves,
            "moving": len(rebalance.departures.held) + len(rebalance.departures.gone),
            "waits": rebalance.waits_for(now),
            "stay": rebalance.obstacles(now),
            "sent": rebalance.sent_in_all,
        }

    def ask(self, now: int) -> None:
        self.rebalance.ask(now)

    def _address(self, node_id: str) -> str | None:
        member = self.rebalance.cluster.topology.members.get(node_id)
        if member is None or member.primary is None:
            return None
        return f"{member.primary.host}:{member.primary.port}"
