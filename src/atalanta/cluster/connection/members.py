"""Members of one cluster connection: the updates that are accepted, and their subscribers.

Updates come from peers (CLUSTER_TOPOLOGY), from nodes that announce themselves here (NODE_ANNOUNCE), and from links
that are lost or open again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.connection.peer import PeerRecord
from atalanta.cluster.duplicate_node_id import check_one_place
from atalanta.cluster.topology import Member, Topology
from atalanta.wire.core.packets.topology import ClusterTopology
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster

FQQN: Final = "::"
EVENT_ID_MAX: Final = (1 << 63) - 1


class Members:
    """The members that a cluster connection knows. `event_id` (ms) is that of this node's last announcement."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topology = Topology()
        self.event_id: int = 0
        self.announcements_left: int = 0

    # -- this node ------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        self.event_id = now // 1_000_000
        self.topology.update(self.own())
        self.announcements_left = self.cluster.config.notification_attempts
        self._arm(now)

    def own(self) -> Member:
        cluster = self.cluster
        own = cluster.transport(cluster.config.connector)
        scale_down = cluster.settings.scale_down
        group = None if scale_down is None else scale_down.group_name
        return Member(cluster.node_id, self.event_id, own, None, None, group)

    def _arm(self, now: int) -> None:
        cluster = self.cluster
        if self.announcements_left > 0:
            pause_ns = cluster.config.notification_interval_ms * 1_000_000
            cluster.broker.timers.set(cluster.key("announce"), now + pause_ns)

    def announce_again(self, now: int) -> None:
        """Announces this node again, notification-attempts times, in case an announcement was lost.

        Each announcement has a new event id.
        """
        self.event_id = max(self.event_id + 1, now // 1_000_000)
        self.topology.update(self.own())
        self.cluster.subscribers.tell(self.own())
        self.announcements_left -= 1
        self._arm(now)

    # -- news -----------------------------------------------------------------------------------
    def on_topology(self, now: int, packet: ClusterTopology) -> None:
        """Handles CLUSTER_TOPOLOGY of a connected peer."""
        if packet.exit:
            record = self.cluster.peers.get(packet.node_id)
            if packet.node_id != self.cluster.node_id and (record is None or not record.linked()):
                self.gone(now, packet.node_id, packet.event_id)
            return
        member = Member(
            packet.node_id,
            packet.event_id,
            packet.primary,
            packet.backup,
            packet.backup_group,
            packet.scale_down_group,
        )
        self.news(now, member)

    def news(self, now: int, news: Member) -> None:
        if news.node_id == self.cluster.node_id:
            if news.primary is not None:
                self.check_copied_folder([news.primary])
            return
        if not news.node_id or FQQN in news.node_id:
            # The name of its store-and-forward queue would not be valid. No broker announces such an id.
            self.cluster.told("member_refused", news.node_id, "this is not a node id")
            return
        known = self.topology.members.get(news.node_id)
        record = self.cluster.peers.get(news.node_id)
        if known is not None and record is not None and record.linked():
            check_one_place(self.cluster.broker.trace, known, news)
        taken = self.topology.update(news)
        if taken is None:
            return
        if known is None and taken.primary is not None:
            place = f"{taken.primary.host}:{taken.primary.port}"
            self.cluster.broker.trace.event("member", {"node": news.node_id, "at": place})
        self.cluster.subscribers.tell(taken)
        self.cluster.bridge_to(now, taken)

    def check_copied_folder(self, connectors: list[TransportConfiguration]) -> None:
        """Records `duplicate_node_id` if another node announces this node's id: one data folder is a copy."""
        for other in connectors:
            if self.cluster.clusters.is_own(other):
                continue
            self.cluster.broker.trace.event(
                "duplicate_node_id",
                {
                    "node": self.cluster.node_id,
                    "other": f"{other.host}:{other.port}",
                    "what_to_do": "this data folder is a copy of that node's, or the other way round: stop one of the"
                    " two, delete the file node-id in its data folder (or the whole folder if its messages are copies),"
                    " and start it again",
                },
            )

    def gone(self, now: int, node_id: str, event_id: int) -> None:
        if self.topology.remove(node_id, event_id):
            self.cluster.broker.trace.event("member_gone", {"node": node_id})
            self.cluster.subscribers.tell_gone(node_id, event_id)

    def back(self, now: int, record: PeerRecord) -> None:
        """Adds a peer to the topology again after its link was lost. It may not have been restarted.

        Such a peer still announces the event id with which it was removed, and other nodes would ignore that. So it
        is added here with the next event id. All subscribers get its removal and its return.
        """
        member = record.member
        if member is None or record.node_id in self.topology.members:
            return
        gone = self.topology.removed.get(record.node_id, 0)
        event_id = min(max(gone, member.event_id) + 1, EVENT_ID_MAX)
        returned = Member(
            member.node_id,
            event_id,
            member.primary,
            member.backup,
            member.backup_group,
            member.scale_down_group,
        )
        self.news(now, returned)

    # -- management -----------------------------------------------------------------------------
    def describe(self) -> list[dict[str, object]]:
        """Returns the entries of listNetworkTopology: one for each member, addresses as host:port."""
        described: list[dict[str, object]] = []
        for member in self.topology.members.values():
            entry: dict[str, object] = {"nodeID": member.node_id}
            if member.primary is not None:
                entry["primary"] = f"{member.primary.host}:{member.primary.port}"
                entry["live"] = entry["primary"]
            if member.backup is not None:
                entry["backup"] = f"{member.backup.host}:{member.backup.port}"
            described.append(entry)
        return described
