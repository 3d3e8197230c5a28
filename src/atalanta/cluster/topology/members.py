"""Members of one cluster connection: the updates that are accepted, and their subscribers.

Updates come from peers (CLUSTER_TOPOLOGY), from nodes that announce themselves here (NODE_ANNOUNCE), and from links
that are lost or open again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.topology.duplicate_node_id import check_one_host
from atalanta.cluster.topology.topology import REMOVED_MAX, Member, Topology
from atalanta.wire.core.packets.topology import ClusterTopology
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.topology.local_node import LocalNode
    from atalanta.cluster.topology.subscribers import TopologySubscribers

ANNOUNCE: Final = "announce"  # timer
FQQN: Final = "::"
EVENT_ID_MAX: Final = (1 << 63) - 1
# No clock shows a higher one: who has made it up gets no answer above it.
FOLLOWED_MAX: Final = 1 << 62


class MemberListener:
    """The owner of the links to the members."""

    def is_linked(self, node_id: str) -> bool:
        """Returns whether the link to that member is open. Then it is a member, whatever other nodes announce."""
        raise NotImplementedError

    def member_changed(self, now: int, member: Member) -> None:
        """Handles a member that is new or updated."""
        raise NotImplementedError

    def announce_pair(self) -> None:
        """Announces this node and its backup over the open links: members that follow another one hear of it there."""
        raise NotImplementedError


class Members:
    """The members that a cluster connection knows."""

    def __init__(
        self,
        local: LocalNode,
        topology: Topology,
        subscribers: TopologySubscribers,
        listener: MemberListener,
    ) -> None:
        self.local = local
        self.topology = topology
        self.subscribers = subscribers
        self.listener = listener
        self.out_of_sight: dict[str, bool] = {}  # not listed any longer, but the subscribers have not heard of it
        self.announcements_left: int = 0
        self.contested = False  # another member of the pair or group has announced the node id

    # -- this node ------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        self.local.renew(now)
        self.topology.update(self.local.member())
        self.announcements_left = self.local.config.notification_attempts
        self._set_timer(now)

    def _set_timer(self, now: int) -> None:
        if self.announcements_left > 0:
            pause_ns = self.local.config.notification_interval_ms * 1_000_000
            self.local.set_timer(ANNOUNCE, now + pause_ns)

    def set_backup(self, now: int, backup: TransportConfiguration) -> None:
        """Announces this node with another backup, again notification-attempts times."""
        self.local.backup = backup
        self.announcements_left = self.local.config.notification_attempts
        self.announce_again(now)

    def announce_again(self, now: int) -> None:
        """Announces this node again, notification-attempts times, in case an announcement was lost.

        Each announcement has a new event id.
        """
        self.local.renew(now)
        own = self.local.member()
        self.topology.update(own)
        self.subscribers.send_member(own)
        if self.contested:
            self.contested = False
            self.listener.announce_pair()
        self.announcements_left -= 1
        self._set_timer(now)

    # -- updates -----------------------------------------------------------------------------------
    def on_topology(self, now: int, packet: ClusterTopology, ours: bool) -> None:
        """Handles CLUSTER_TOPOLOGY of a connected peer. `ours`: it is an Atalanta.

        An Atalanta passes on what the member has said itself. A real Artemis also says it of a member that it has lost
        sight of (BridgeImpl.fail): that is not passed on.
        """
        if packet.exit:
            node_id = packet.node_id
            if node_id == self.local.node_id or self.listener.is_linked(node_id):
                return
            if ours:
                self.left(node_id, packet.event_id)
            else:
                self.lost(node_id, packet.event_id)
            return
        member = Member(
            packet.node_id,
            packet.event_id,
            packet.primary,
            packet.backup,
            packet.backup_group,
            packet.scale_down_group,
        )
        self.update(now, member)

    def update(self, now: int, update: Member) -> None:
        """Adds or changes a member, and notifies the subscribers and the listener if the update is accepted."""
        node_id = update.node_id
        if node_id == self.local.node_id:
            # An older update tells of this node's last run, or of the other half of its pair before a failover.
            # Of two announcements with one id a member keeps the first that it has heard.
            if update.primary is not None and update.event_id >= self.local.event_id:
                self.check_copied_folder([update.primary])
                self._announce_above(now, update)
            return
        if not node_id or FQQN in node_id:
            # The name of its store-and-forward queue would not be valid. No broker announces such an id.
            self.local.report("member_refused", node_id, "the node id is not valid")
            return
        known = self.topology.members.get(node_id)
        if known is not None and self.listener.is_linked(node_id):
            check_one_host(self.local.trace, known, update)
        accepted = self.topology.update(update)
        if accepted is None:
            return
        self.out_of_sight.pop(node_id, None)
        if known is None and accepted.primary is not None:
            at = accepted.primary.address
            self.local.trace.event("member", {"node": node_id, "at": at})
        self.subscribers.send_member(accepted)
        self.listener.member_changed(now, accepted)

    def _announce_above(self, now: int, update: Member) -> None:
        """Announces this node above an announcement of another member of its pair or group, or above a higher one of
        its own, of which its journal knows nothing.

        That member has lost the service, or this node would have. The members of the cluster ignore lower event ids.
        It happens an interval later: until both know who serves, they would answer each other as fast as they can.
        """
        if update.primary is None or update.event_id > FOLLOWED_MAX:
            return
        passed = self.local.settings.announces(update.primary) and update.event_id > self.local.event_id
        if passed or self._is_partner(update.primary):
            self.local.raise_event_id(update.event_id)
            self.contested = True
            self.announcements_left = max(self.announcements_left, 1)
            self._set_timer(now)

    def _is_partner(self, connector: TransportConfiguration) -> bool:
        """Returns whether a connector leads to the other half of this node's pair, or to a member of its group."""
        backup = self.local.backup
        return (backup is not None and backup.same_target(connector)) or self.local.settings.is_of_group(connector)

    def check_copied_folder(self, connectors: list[TransportConfiguration]) -> None:
        """Records `duplicate_node_id` if another node announces this node's id: one data folder is a copy."""
        for other in connectors:
            if self.local.settings.announces(other) or self._is_partner(other):
                continue
            self.local.trace.event(
                "duplicate_node_id",
                {
                    "node": self.local.node_id,
                    "other": other.address,
                    "what_to_do": "this data folder is a copy of that node's, or the other way round: stop one of the"
                    " two, delete the file node-id in its data folder (or the whole folder if its messages are copies),"
                    " and start it again",
                },
            )

    def left(self, node_id: str, event_id: int) -> None:
        """Removes a member that has said itself that it leaves, and notifies the subscribers.

        A removal that is older than the last event of the member is ignored.
        """
        if self._remove(node_id, event_id) or node_id in self.out_of_sight:
            self.out_of_sight.pop(node_id, None)
            self.subscribers.send_removal(node_id, event_id)

    def lost(self, node_id: str, event_id: int) -> None:
        """Removes a member that this node has lost sight of from the lists that new subscribers get.

        Nobody is notified: others may see it. A removal counts more for a member than for this node: real Artemis
        members would leave it out of their lists although they are linked to it, and their clients would not find it.
        """
        if self._remove(node_id, event_id) and len(self.out_of_sight) < REMOVED_MAX:
            self.out_of_sight[node_id] = True

    def _remove(self, node_id: str, event_id: int) -> bool:
        """Removes a member, unless a newer event of it is known. Returns True if it was listed."""
        removed = self.topology.remove(node_id, event_id)
        if removed:
            self.local.trace.event("member_gone", {"node": node_id})
        return removed

    def restore(self, now: int, member: Member) -> None:
        """Adds a peer to the topology again after its link was lost. It may not have been restarted.

        Such a peer still announces the event id with which it was removed, and other nodes would ignore that. So it
        is added here with the next event id.
        """
        if member.node_id in self.topology.members:
            return
        removed = self.topology.removed.get(member.node_id, 0)
        event_id = min(max(removed, member.event_id) + 1, EVENT_ID_MAX)
        returned = Member(
            member.node_id,
            event_id,
            member.primary,
            member.backup,
            member.backup_group,
            member.scale_down_group,
        )
        self.update(now, returned)

    # -- management -----------------------------------------------------------------------------
    def describe(self) -> list[dict[str, object]]:
        """Returns the entries of listNetworkTopology: one for each member, addresses as host:port."""
        described: list[dict[str, object]] = []
        for member in self.topology.members.values():
            entry: dict[str, object] = {"nodeID": member.node_id}
            if member.primary is not None:
                entry["primary"] = member.primary.address
                entry["live"] = entry["primary"]
            if member.backup is not None:
                entry["backup"] = member.backup.address
            described.append(entry)
        return described
