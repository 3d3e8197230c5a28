"""Clients that connect for the first time, to a node of a zone which they do not prefer.

Their login is answered with a redirect, as by a connection router. A Java client that logs in without its client id is
asked for it, if a client id may decide.

Only clients that reconnect are redirected (cluster/balancing/movable.py). A client that comes from another node creates
its sessions again, and is not disturbed: it goes when it is idle, as in any rebalancing. A client that repeats a
redirected login on another connection stays: it could not reach the other node. The Java client also repeats it at once
on the same connection, which it is about to close (ActiveMQClientProtocolManager.createSessionContext): no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from atalanta.cluster.balancing.plan import MemberClients, allowed, homeward
from atalanta.kernel.errors import ROUTING, BrokerError
from atalanta.wire.server import Routing

if TYPE_CHECKING:
    from atalanta.cluster.balancing.rebalance import Rebalance
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.connection import ClientConnection

LOGIN_NS: Final = 60_000_000_000  # a redirected login is remembered so long
LOGINS_MAX: Final = 10_000


class Newcomers(Routing):
    """The redirects of new clients to their zone. `sent`: redirected logins, (time in ns, connection) by name."""

    def __init__(self, of: Callable[[int], Rebalance]) -> None:
        self.of = of  # connection -> the balancing of its cluster connection
        self.sent: dict[str, tuple[int, int]] = {}

    def route(
        self, now: int, connection: ClientConnection, client_id: str | None, identity: Identity
    ) -> bool:
        rebalance = self.of(connection.conn)
        preferred = rebalance.zones.preferred
        if (
            not (preferred.tables or connection.client.zones)
            or connection.authenticated
            or identity.cluster
            or connection.came_from
            or connection.can_be_routed() is not None
            or rebalance.eligibility.excluded(connection) is not None
        ):
            return True
        if client_id is None and preferred.by_client_id() and connection.can_repeat_login():
            connection.routed(now, BrokerError(ROUTING, "the zone of a client depends on its client id"))
            return False
        name = connection.login_name()
        sent_at, sent_conn = self.sent.get(name, (now - LOGIN_NS, -1))
        if sent_conn == connection.conn:
            return False
        zones = preferred.at_login(connection.client, client_id, identity.user)
        node_id = self._target(now, rebalance, zones, connection)
        target = None if node_id is None else rebalance.target(node_id)
        if node_id is None or target is None or not name:
            return True
        if now - sent_at < LOGIN_NS:
            del self.sent[name]
            rebalance.eligibility.returned[connection.conn] = True
            return True
        self._remember(now, name, connection.conn)
        rebalance.redirects.arriving[connection.conn] = (node_id, now)
        rebalance.redirects.tell(connection, node_id, target)
        connection.redirect(node_id, target)
        connection.routed(now, BrokerError(ROUTING, f"clients of this zone belong to {target.address}"))
        return False

    def _remember(self, now: int, name: str, conn: int) -> None:
        if len(self.sent) >= LOGINS_MAX:
            recent = {known: sent for known, sent in self.sent.items() if now - sent[0] < LOGIN_NS}
            self.sent = recent if len(recent) < LOGINS_MAX else {}
        self.sent[name] = (now, conn)

    def _target(
        self, now: int, rebalance: Rebalance, zones: tuple[str, ...], connection: ClientConnection
    ) -> str | None:
        """Returns the emptiest member of the zone that a client belongs to; None if that is the zone of this node."""
        zone = rebalance.zones.first_of(now, zones, connection)
        if zone is None or zone == rebalance.zones.own or rebalance.refuses_redirects(now) is not None:
            return None
        return emptiest(connection, rebalance.zones.members_of(now, zone))


def emptiest(connection: ClientConnection, members: Sequence[MemberClients]) -> str | None:
    """Returns the member with the fewest clients among those that a client can reach; None if it reaches none."""
    moves = homeward(1, [member for member in members if connection.can_reach(member.node_id)])
    return moves[0][0] if moves else None


def place_of(now: int, rebalance: Rebalance, connection: ClientConnection) -> str | None:
    """Returns the member to which a failover client of OpenWire is sent at its first login; None if it stays.

    That is the emptiest member of its zone, or of this one if this node has more clients than it is to have. The list
    of a client with `randomize=false` begins with the same node everywhere. In Classic it is rotated for each client.
    The tick's count of clients is kept up to date here, as many may log in within a second.
    """
    rebalance.count_login()
    if rebalance.refuses_redirects(now) is not None or connection.can_move() is not None:
        return None
    if rebalance.eligibility.excluded(connection) is not None:
        return None
    zones = rebalance.zones
    zone = zones.wanted(now, connection)
    if zone is not None and zone != zones.own:
        found = emptiest(connection, zones.members_of(now, zone))
    else:
        places = [place for place in rebalance.places(now) if (place.zone or "") == zones.own]
        total = sum(place.clients for place in places)
        if rebalance.clients <= allowed(total, len(places), rebalance.own.rebalance_tolerance_percent):
            return None
        found = emptiest(connection, [place for place in places if place.accepts])
    if found is not None:
        rebalance.count_first_redirect(now, connection.conn, found)
    return found
