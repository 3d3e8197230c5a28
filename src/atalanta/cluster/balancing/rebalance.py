"""Rebalancing of clients over the members of a cluster: a node with too many redirects some to other members.

Once a second each node counts its clients and sends the count to its peers (cluster/balancing/client_count.py).
When the members have been the same for `rebalance-settle-time`, each node does its own part of the common plan
(cluster/balancing/plan.py). It redirects (cluster/balancing/redirects.py) only clients that suffer no harm
(cluster/balancing/movable.py), and at most `rebalance-rate` a second. Rebalancing is independent of
message-load-balancing.

A client that prefers a zone (cluster/balancing/zones.py) is redirected to it from any other zone, before anything is
balanced. It does not leave the zone as long as that has a member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from atalanta.cluster.balancing.client_count import HEARTBEAT_NS, ClientCount, PublishedCount
from atalanta.cluster.balancing.member_brokers import own_broker
from atalanta.cluster.balancing.movable import Eligibility, is_client
from atalanta.cluster.balancing.plan import MemberClients, add_moves, homeward, moves_of, within
from atalanta.cluster.balancing.redirects import Redirects
from atalanta.cluster.balancing.zones import Zones
from atalanta.cluster.native_config import OwnSettings
from atalanta.kernel.routing.bindings import OFF, STRICT
from atalanta.wire.connection import ClientConnection

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import ClusterConnection
    from atalanta.cluster.connection.cluster_connections import ClusterConnections
    from atalanta.wire.connection import TransportConnection
    from atalanta.wire.core.transport import TransportConfiguration
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.openwire.server.peer_brokers import PeerBroker

TICK: Final = "tick"
SECOND_NS: Final = 1_000_000_000
TICK_NS: Final = SECOND_NS
STALE_NS: Final = 4 * HEARTBEAT_NS  # older counts of a member are ignored
ASKED_NS: Final = 60 * SECOND_NS  # a request of an operator is valid so long at most
CAME_BACK_MIN: Final = 5
CAME_BACK_PAUSE_NS: Final = 600 * SECOND_NS


class Rebalance:
    """The rebalancing of one cluster connection and of the clients of its acceptors.

    `connections` are those of the node, by connection id; `acceptors` are the node's, by name; `prefix` begins the keys
    of its timers.
    """

    def __init__(
        self,
        own: OwnSettings,
        clusters: ClusterConnections,
        cluster: ClusterConnection,
        connections: Mapping[int, TransportConnection],
        acceptors: Mapping[str, AcceptorConfig],
        prefix: str,
    ) -> None:
        self.own = own
        self.clusters = clusters
        self.cluster = cluster
        self.prefix = prefix
        self.broker = clusters.broker
        self.connections = connections
        self.leaving: Callable[[], bool] = stays  # set by the node; a leaving node takes no clients
        self.eligibility = Eligibility(
            self.broker.clients, self.broker.branches, own.rebalance_any_client, self.follows
        )
        self.eligibility.connector = clusters.settings.transport(cluster.config.connector)
        self.zones = Zones(own, self.broker.ids, cluster, self.target, self.places)
        self.clients: int = 0
        self.acceptors = acceptors
        source = (self.broker.node_id, cluster.config.name, self.eligibility.connector.address)
        self.published = PublishedCount(clusters.notifications, source, self._own_broker())
        self.members: tuple[str, ...] = ()
        self.calm_at: int = 0
        self.asked_until: int = 0
        self.paused_until: int = 0
        self.sent: int = 0  # redirects of this round
        self.sending_since: int = 0  # first redirect of this round
        self.came_back: int = 0
        self.sent_in_all: int = 0
        self.stuck: bool = False
        self.redirects = Redirects(self)

    def follow_acceptors(self) -> None:
        """Takes changed acceptors: others are told of those for OpenWire with the next count."""
        self.published.told = self._own_broker()

    def _own_broker(self) -> PeerBroker:
        """Returns this node with the acceptors that serve the cluster connection, which it counts."""
        serving = [each for each in self.acceptors.values() if self.clusters.serving(each) is self.cluster]
        self.eligibility.acceptors = len(serving)
        return own_broker(self.broker.config.name, serving, self.eligibility.connector)

    # -- life -----------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        self.zones.presence.started = now
        self.calm_at = now + self.own.rebalance_settle_ms * 1_000_000
        self.broker.timers.set(self.prefix + TICK, now + TICK_NS)
        self._tell(now)

    def stop(self, now: int) -> None:
        self.redirects.cancel_all(now)
        self.broker.timers.cancel(self.prefix + TICK)

    def on_tick(self, now: int) -> None:
        self.broker.timers.set(self.prefix + TICK, now + TICK_NS)
        self.zones.observe(now)
        self.count(now)
        self._tell(now)
        self.redirects.on_tick(now)
        self._balance(now)

    # -- counts ---------------------------------------------------------------------------------
    def clients_here(self, without: int = -1) -> list[ClientConnection]:
        """Returns the clients of this cluster connection, oldest first, without the connection `without`."""
        found: list[ClientConnection] = []
        for conn, connection in self.connections.items():
            if (
                conn != without
                and isinstance(connection, ClientConnection)
                and is_client(connection)
                and self.clusters.of_acceptor(connection) is self.cluster
            ):
                found.append(connection)
        return found

    def count(self, now: int, without: int = -1) -> None:
        """Counts the clients of this node, and those that came back after a redirect."""
        here = self.clients_here(without)
        self.clients = len(here)
        self.zones.count(here)
        if self.sent > 0:
            for connection in here:
                self._record_return(now, connection.conn, connection)
        self.eligibility.prune(self.connections)

    def _record_return(self, now: int, conn: int, connection: ClientConnection) -> None:
        """Records a client that came back after its redirect. Pauses the rebalancing if most of them do."""
        if (
            connection.came_from != self.broker.node_id
            or connection.opened < self.sending_since
            or conn in self.eligibility.returned
        ):
            return
        self.eligibility.returned[conn] = True
        self.came_back += 1
        if self.came_back >= CAME_BACK_MIN and 2 * self.came_back > self.sent:
            self.paused_until = now + CAME_BACK_PAUSE_NS
            self.broker.trace.event(
                "rebalance_paused",
                {
                    "sent": self.sent,
                    "came_back": self.came_back,
                    "seconds": CAME_BACK_PAUSE_NS // SECOND_NS,
                },
            )
            self._end_round()

    def _tell(self, now: int) -> None:
        up_ns = now - self.zones.presence.started
        count = ClientCount(
            self.clients, self.zones.bound, self.own.zone, not self.leaving(), up_ns, now, self.published.told
        )
        self.published.publish(now, count)

    def places(self, now: int) -> list[MemberClients]:
        """Returns this node and the members that take clients; redirected clients count at their target already."""
        node_id, bound = self.broker.node_id, self.zones.bound
        found = [MemberClients(node_id, self.own.zone, self.clients, False, bound)]
        coming = self.redirects.arrivals(now)
        for node_id, record in self.cluster.peers.items():
            news = record.clients
            if (
                news is not None
                and news.accepts
                and record.linked()
                and now - news.received_ns < STALE_NS
                and self.target(node_id) is not None
            ):
                clients = news.clients + coming.get(node_id, 0)
                found.append(MemberClients(node_id, news.zone, clients, True, news.bound))
        return found

    def away(self, now: int) -> dict[str, list[ClientConnection]]:
        """Returns the clients that belong to another zone, by that zone."""
        found: dict[str, list[ClientConnection]] = {}
        for connection in self.clients_here():
            zone = self.zones.wanted(now, connection)
            if zone is not None and zone != self.zones.own:
                found.setdefault(zone, []).append(connection)
        return found

    def _homeward(
        self, now: int, away: dict[str, list[ClientConnection]], able: bool
    ) -> list[tuple[str, int]]:
        """Returns moves of the clients that belong to another zone; with `able` only those that can go now."""
        moves: dict[str, int] = {}
        for zone, clients in sorted(away.items()):
            members = self.zones.members_of(now, zone)
            for kind in by_reach(clients).values():
                going = sum(not able or self.redirects.is_able(now, each) for each in kind)
                takers = [member for member in members if kind[0].can_reach(member.node_id)]
                add_moves(moves, homeward(going, takers), members)
        return sorted(moves.items())

    def target(self, node_id: str) -> TransportConfiguration | None:
        """Returns the member's connector for clients; None if only one of both nodes announces TLS."""
        member = self.cluster.topology.members.get(node_id)
        if member is None or member.primary is None:
            return None
        return member.primary if secure(member.primary) == secure(self.eligibility.connector) else None

    def members_reached(self, clients: Mapping[str, ClientConnection]) -> dict[str, int]:
        """Returns how many members the clients of each kind can reach; `clients` has one of each (`reach`)."""
        return {
            kind: sum(connection.can_reach(node_id) for node_id in self.cluster.peers)
            for kind, connection in clients.items()
        }

    def follows(self, address: str) -> bool:
        """Returns whether messages of the address are redistributed to nodes with consumers."""
        if self.cluster.mode in (OFF, STRICT):
            return False
        return self.broker.settings.match(address).redistribution_delay_ms >= 0

    # -- deciding -------------------------------------------------------------------------------
    def _balance(self, now: int) -> None:
        places = self.places(now)
        members = tuple(sorted(place.node_id for place in places))
        if members != self.members:
            self.members = members
            self.calm_at = now + self.own.rebalance_settle_ms * 1_000_000
        if self.leaving():
            self.redirects.cancel_all(now)
        if self.waits_for(now) is not None:
            return
        moves = self.moves(now, places, now < self.asked_until)
        redirects = self.redirects
        if not moves and not redirects.pending:
            self.asked_until = 0
            self._end_round()
            return
        missing = redirects.begin(now, moves)
        if missing > 0 and not redirects.pending and not redirects.sent and not self.stuck:
            self.stuck = True
            surplus = sum(count for _, count in moves)
            counted = self.obstacles(now)
            reasons = sorted(counted, key=lambda reason: (-counted[reason], reason))
            why = ", ".join(f"{counted[reason]} {reason}" for reason in reasons)
            staying = sum(counted.values())
            self.broker.trace.event(
                "rebalance_stuck",
                {"surplus": surplus, "stay": staying, "why": why or "no client is left"},
            )

    def waits_for(self, now: int) -> str | None:
        """Returns why no client is redirected now, None if clients may be."""
        if len(self.members) < 2 and not self.zones.real_members():
            return "no other member tells how many clients it has"
        reason = self.refuses_redirects(now)
        if reason is None and self.asked_until <= now < self.calm_at:
            return "members came or went a moment ago"
        return reason

    def refuses_redirects(self, now: int) -> str | None:
        """Returns why no client is redirected now, however calm the cluster is; None if clients may be."""
        if self.leaving():
            return "leaves the cluster"
        if now < self.asked_until:
            return None
        if not self.own.rebalance:
            return "switched off in atalanta.toml"
        if now < self.paused_until:
            return "clients that were sent away came back"
        return None

    def moves(self, now: int, places: list[MemberClients], exactly: bool) -> list[tuple[str, int]]:
        """Returns pairs of (node id, clients it gets from this node); without tolerance if `exactly`.

        Clients of other zones go first. Those that cannot go now do not keep the others from being balanced.
        """
        tolerance = 0 if exactly else self.own.rebalance_tolerance_percent
        away = self.away(now)
        return (
            self._homeward(now, away, True)
            or self._leveling(places, tolerance)
            or self._homeward(now, away, False)
        )

    def _leveling(self, places: list[MemberClients], tolerance_percent: int) -> list[tuple[str, int]]:
        """Returns the moves of the common plan, as far as clients of this node can reach the members.

        Clients that cannot reach a member which is to get more are balanced among those that they can reach.
        """
        own, across = self.broker.node_id, self.own.rebalance_across_zones
        whole = moves_of(own, places, tolerance_percent, across)
        if not whole:
            return []
        kinds = by_reach(self.clients_here())
        moves: dict[str, int] = {}
        for node_id, count in whole:
            able = sum(len(kind) for kind in kinds.values() if kind[0].can_reach(node_id))
            if able > 0:
                moves[node_id] = min(count, able)
        if sum(moves.values()) == sum(count for _, count in whole):
            return whole
        places = [*places]
        add_moves({}, list(moves.items()), places, own)
        for kind in kinds.values():
            near = [place for place in places if place.node_id == own or kind[0].can_reach(place.node_id)]
            if len(near) < len(places):
                given = within(len(kind), moves_of(own, near, tolerance_percent, across))
                add_moves(moves, given, places, own)
        return sorted(moves.items())

    def count_login(self) -> None:
        """Counts a client that has logged in."""
        self.clients += 1

    def count_first_redirect(self, now: int, conn: int, node_id: str) -> None:
        """Counts a client that was redirected at its first login."""
        self.clients -= 1
        self.redirects.arriving[conn] = (node_id, now)

    def count_redirect(self, now: int) -> None:
        """Counts a client that was redirected."""
        if self.sent == 0:
            self.sending_since = now
        self.clients -= 1
        self.sent += 1
        self.sent_in_all += 1

    def ask(self, now: int) -> None:
        """Starts the rebalancing now and without tolerance, for an operator."""
        self.asked_until = now + ASKED_NS
        self.paused_until = 0
        self.broker.timers.set(self.prefix + TICK, now)

    def _end_round(self) -> None:
        if self.sent > 0:
            self.broker.trace.event(
                "clients_balanced", {"clients": self.clients, "sent": self.sent}
            )
        self.sent = 0
        self.came_back = 0
        self.stuck = False

    def obstacles(self, now: int, without: int = -1) -> dict[str, int]:
        """Returns the number of clients that stay, by reason, without the connection `without`."""
        counted: dict[str, int] = {}
        for connection in self.clients_here(without):
            reason = self.eligibility.obstacle(connection, now)
            if reason is None:
                busy = self.redirects.busy_with(connection.conn, now)
                reason = None if busy is None else f"was busy: {busy}"
            if reason is not None:
                counted[reason] = counted.get(reason, 0) + 1
        return counted


def by_reach(clients: Sequence[ClientConnection]) -> dict[str, list[ClientConnection]]:
    """Returns the clients by what members they can reach; no list is empty."""
    found: dict[str, list[ClientConnection]] = {}
    for connection in clients:
        found.setdefault(connection.reach(), []).append(connection)
    return found


def stays() -> bool:
    """Returns False: the node does not leave the cluster."""
    return False


def secure(transport: TransportConfiguration) -> bool:
    """Returns whether a connector uses TLS."""
    return transport.parameters.get("sslEnabled", "").lower() == "true"
