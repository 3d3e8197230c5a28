"""The zones of a cluster, as one node sees them: which ones have members, and where each client is to be.

A zone that has been away is taken again when it had a member for `zone-stability-time`, and a random time more, so that
the nodes of other zones do not all begin at the same moment. A node that has just started does not know whether a zone
was away. So members tell how long they have been up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from atalanta.cluster.balancing.plan import MemberClients
from atalanta.cluster.balancing.preferred_zones import PreferredZones
from atalanta.cluster.native_config import OwnSettings

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import ClusterConnection
    from atalanta.kernel.ports import Ids
    from atalanta.wire.connection import ClientConnection
    from atalanta.wire.core.transport import TransportConfiguration

JITTER_SHARE: Final = 4  # the random time is at most this part of zone-stability-time


class ZonePresence:
    """The zones that have members. `since` (ns): from when on a zone counts as stable, by name."""

    def __init__(self, stability_ns: int, ids: Ids) -> None:
        self.stability_ns = stability_ns
        self.ids = ids
        self.started: int = 0  # when this node started (ns)
        self.since: dict[str, int] = {}

    def observe(self, now: int, members: Sequence[tuple[str | None, int]]) -> None:
        """Records the zones of the members, each with the time (ns) for which the member has been up."""
        young = now - self.started < self.stability_ns
        seen: dict[str, int] = {}
        for zone, up_ns in members:
            if zone is None:
                continue
            known = self.since.get(zone, seen.get(zone))
            if young:
                told = now - up_ns + self.stability_ns
                seen[zone] = told if known is None else min(told, known)
            else:
                seen[zone] = now + self._pause_ns() if known is None else known
        self.since = seen

    def _pause_ns(self) -> int:
        drawn = int.from_bytes(self.ids.secret(8), "big")
        return self.stability_ns + drawn % (self.stability_ns // JITTER_SHARE + 1)

    def stable(self, now: int, zone: str) -> bool:
        """Returns whether clients may be sent to the zone."""
        return zone in self.since and now >= self.since[zone]


class Zones:
    """The zones of one cluster connection. `own` is the zone of this node, "" if it has none.

    `bound` is the number of clients that prefer a zone. `target` returns the connector of a member, `places` the
    members that tell their count.
    """

    def __init__(
        self,
        settings: OwnSettings,
        ids: Ids,
        cluster: ClusterConnection,
        target: Callable[[str], TransportConfiguration | None],
        places: Callable[[int], list[MemberClients]],
    ) -> None:
        self.own: str = settings.zone or ""
        self.cluster = cluster
        self.target = target
        self.places = places
        self.preferred = PreferredZones(settings)
        self.presence = ZonePresence(settings.zone_stability_ms * 1_000_000, ids)
        self.bound: int = 0

    def count(self, here: Sequence[ClientConnection]) -> None:
        """Counts the clients of this node that prefer a zone."""
        self.bound = sum(bool(self.preferred.of(connection)) for connection in here)
        self.preferred.prune({connection.conn for connection in here})

    def observe(self, now: int) -> None:
        """Records which zones have members."""
        members: list[tuple[str | None, int]] = []
        for place in self.places(now):
            record = self.cluster.peers.get(place.node_id)
            if record is not None and record.clients is not None:
                up_ns = record.clients.up_ns + now - record.clients.received_ns
                members.append((place.zone, up_ns))
        members += [(place.zone, self.presence.stability_ns) for place in self.real_members()]
        self.presence.observe(now, members)

    # -- members --------------------------------------------------------------------------------
    def real_members(self) -> list[MemberClients]:
        """Returns the real Artemis members in a zone of atalanta.toml. They do not tell how many clients they have."""
        found: list[MemberClients] = []
        if not self.preferred.by_address:
            return found
        for node_id, record in self.cluster.peers.items():
            zone = self.of_member(node_id)
            if zone and record.clients is None and record.linked() and self.target(node_id) is not None:
                found.append(MemberClients(node_id, zone, 0))
        return found

    def members_of(self, now: int, zone: str) -> list[MemberClients]:
        """Returns the members of another zone that take clients; real ones if it has none of ours."""
        ours = [place for place in self.places(now) if place.zone == zone and place.accepts]
        return ours or [place for place in self.real_members() if place.zone == zone]

    def of_member(self, node_id: str) -> str:
        """Returns the zone of another member, "" if it has none."""
        record = self.cluster.peers.get(node_id)
        if record is not None and record.clients is not None:
            return record.clients.zone or ""
        target = self.target(node_id)
        return "" if target is None else self.preferred.by_address.get(target.address, "")

    # -- clients --------------------------------------------------------------------------------
    def first_of(self, now: int, zones: Sequence[str], connection: ClientConnection) -> str | None:
        """Returns the first of the zones that has members which a client can reach, None if there is none."""
        for zone in zones:
            if zone == self.own or (self.presence.stable(now, zone) and self._is_open(zone, connection)):
                return zone
        return None

    def _is_open(self, zone: str, connection: ClientConnection) -> bool:
        """Returns whether a client can reach one of the members of another zone."""
        if not connection.reach():
            return True
        return any(
            self.of_member(node_id) == zone and connection.can_reach(node_id) for node_id in self.cluster.peers
        )

    def wanted(self, now: int, connection: ClientConnection) -> str | None:
        """Returns the zone in which a client is to be, None if it may be anywhere.

        That is the zone of this node if none of those that the client prefers has members.
        """
        zones = self.preferred.of(connection)
        if not zones:
            return None
        zone = self.first_of(now, zones, connection)
        return self.own if zone is None else zone

    def may_go(self, now: int, connection: ClientConnection, node_id: str) -> bool:
        """Returns whether the zones of a client allow it to go to a member."""
        wanted = self.wanted(now, connection)
        return wanted is None or wanted == self.of_member(node_id)
