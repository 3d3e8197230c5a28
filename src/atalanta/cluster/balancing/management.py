"""Management of client balancing: `ClientBalance` and `rebalance` of the resource `broker` (additions to Artemis)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.management.request.call import Attributes, Call, Operations, Parameters, flag_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.cluster.balancing.balancers import Balancers
    from atalanta.cluster.balancing.rebalance import Rebalance


class BalanceOperations:
    """Client balancing on this node, for the cluster connection of the acceptor by which the caller came."""

    def __init__(self, balancers: Balancers) -> None:
        self.balancers = balancers
        self.attributes: Attributes = {"ClientBalance": self.client_balance}
        self.operations: Operations = {"rebalance": [("b", self.rebalance)]}

    def client_balance(self, call: Call) -> object:
        """Returns JSON: this node, `members` and their clients, planned `moves`, why it `waits`, why clients `stay`."""
        return encode_json(self.describe(call.now, False, call.connection))

    def rebalance(self, call: Call, given: Parameters) -> object:
        """(dryRun): returns the answer of `client_balance` without tolerance; redirects the surplus unless dryRun."""
        described = self.describe(call.now, True, call.connection)
        if not flag_of(given, 0):
            call.command.begin_change()
            self.balancers.of(call.connection).ask(call.now)
        return encode_json(described)

    def describe(self, now: int, exactly: bool, connection: int) -> dict[str, object]:
        """Returns the fields of the answer. `exactly` drops the tolerance. The caller's `connection` is not counted."""
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
            "away": sum(len(clients) for clients in rebalance.away(now).values()),
            "on": rebalance.own.rebalance,
            "members": members,
            "moves": moves,
            "moving": len(rebalance.redirects.pending) + len(rebalance.redirects.sent),
            "waits": rebalance.waits_for(now),
            "stay": rebalance.obstacles(now, connection),
            "sent": rebalance.sent_in_all,
        }


def address(rebalance: Rebalance, node_id: str) -> str | None:
    """Returns the member's host:port for clients, None if it is not known."""
    member = rebalance.cluster.topology.members.get(node_id)
    if member is None or member.primary is None:
        return None
    return member.primary.address
