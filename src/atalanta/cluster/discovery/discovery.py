"""Broadcast and discovery groups: a node announces its connectors and receives those of other nodes.

The announcement is Artemis' datagram. It goes to a JGroups channel (cluster/discovery/jgroups_channels.py): a UDP
multicast group, or what a JGroups stack file describes. One connector is kept for each node, the last of its newest
announcement (DiscoveryGroup.java). A node that is silent for refresh-timeout is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.cluster.config import BroadcastGroupConfig, ClusterSettings, DiscoveryGroupConfig
from atalanta.cluster.discovery.broadcast_groups import BROADCAST, MILLISECOND_NS, BroadcastGroups
from atalanta.cluster.discovery.folder_channel import FolderChannel
from atalanta.cluster.discovery.hosts_channel import HostsChannel
from atalanta.cluster.discovery.jgroups_channels import JGROUPS_PREFIX, JgroupsChannel
from atalanta.cluster.discovery.mping_channel import MpingChannel
from atalanta.cluster.discovery.multicast_channel import MulticastChannel
from atalanta.cluster.part import Part
from atalanta.cluster.topology.duplicate_node_id import Sightings, report_shared_id
from atalanta.wire.connection import TransportConnection
from atalanta.wire.core.broadcast_datagram import (
    Announcement,
    decode_announcement,
    encode_announcement,
)
from atalanta.wire.jgroups_discovery import DNS, FOLDER, HOSTS, MPING, MULTICAST, JgroupsStack
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.ports import Ids, Links, Timers, Trace, Wire
    from atalanta.wire.core.transport import TransportConfiguration

EXPIRE: Final = "discovery.expire."
WAIT: Final = "discovery.wait."
CHANNEL: Final = "discovery.channel."
CHANNELS: Final[dict[str, type[JgroupsChannel]]] = {
    MULTICAST: MulticastChannel,
    HOSTS: HostsChannel,
    DNS: HostsChannel,
    FOLDER: FolderChannel,
    MPING: MpingChannel,
}
# Prefix of the names of the groups at the Links port.
HEARS: Final = "discovery/"
FOUND_MAX: Final = 10_000
WHAT_TO_DO: Final = (
    "this data folder is a copy of that node's, or the other way round: stop one of the two, delete the file node-id"
    " in its data folder (or the whole folder if its messages are copies), and start it again"
)


class DiscoveryListener:
    """Listener for the nodes of a discovery group: a cluster connection or a bridge."""

    def discovered(self, now: int, node_id: str, connector: TransportConfiguration) -> None:
        """Handles an announcement of a node, also one without change. `connector` leads to the node."""

    def undiscovered(self, now: int, node_id: str) -> None:
        """Handles that a node was silent for refresh-timeout."""


class DiscoveredNode:
    """A discovered node, and the time of its last announcement."""

    def __init__(self, connector: TransportConfiguration, announced_ns: int) -> None:
        self.connector = connector
        self.announced_ns = announced_ns


class DiscoveryGroup:
    """A discovery group with listeners. `entries` is by node id, `users` names each listener."""

    def __init__(self, config: DiscoveryGroupConfig) -> None:
        self.config = config
        self.refresh_ns = config.refresh_timeout_ms * MILLISECOND_NS
        self.entries: dict[str, DiscoveredNode] = {}
        self.listeners: list[DiscoveryListener] = []
        self.users: list[str] = []
        self.sightings = Sightings(2 * self.refresh_ns)
        self.has_announcements = False
        self.twin: str = ""  # the unique id of another process with our node id
        self.duplicate_reported_ns: int = 0

    def change(self, config: DiscoveryGroupConfig) -> None:
        """Takes other settings. The nodes that were heard stay until refresh-timeout, unless they are heard again."""
        self.config = config
        self.refresh_ns = config.refresh_timeout_ms * MILLISECOND_NS
        self.sightings.window_ns = 2 * self.refresh_ns


class Discovery(Part):
    """The groups of one node. A discovery group is joined when its first listener is added.

    `close` closes a connection, with the reason. A `silent` node listens at no port.
    """

    def __init__(
        self, settings: ClusterSettings, links: Links, node_id: str, ids: Ids, timers: Timers, trace: Trace, wire: Wire,
        close: Callable[[int, str], None], silent: bool = False,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.node_id: str = node_id
        self.ids = ids
        self.timers = timers
        self.trace = trace
        self.links = links
        self.wire = wire
        self.close = close
        self.silent = silent
        self.channels: list[JgroupsChannel] = []
        self.channels_made = 0
        self.unique_id: str = ""
        self.sender: bytes = b""  # this process as the sender of JGroups' messages
        self.groups: dict[str, DiscoveryGroup] = {}
        self.broadcasts = BroadcastGroups(self)
        self.stopping = False

    # -- life -----------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        self.sender = self.ids.uuid()
        self.unique_id = self.sender.hex()
        self.broadcasts.open(now, self.settings.broadcast_groups)

    def stop(self, now: int) -> None:
        self.stopping = True
        for channel in self.channels:
            channel.close()
        self.broadcasts.close()
        for name in self.groups:
            self.links.leave(HEARS + name)

    @property
    def serving(self) -> bool:
        """Returns whether groups may start: the node has started, and neither stops nor scales down."""
        return bool(self.sender) and not self.stopping

    def listen(self, now: int, name: str, listener: DiscoveryListener, user: str) -> None:
        """Adds a listener to the discovery group `name`: `user` says whose. It gets the known nodes at once."""
        group = self.groups.get(name)
        if group is None:
            group = DiscoveryGroup(self.settings.discovery_groups[name])
            self.groups[name] = group
            self._join(now, group)
        group.listeners.append(listener)
        group.users.append(user)
        for node_id, entry in list(group.entries.items()):
            listener.discovered(now, node_id, entry.connector)

    def unlisten(self, name: str, listener: DiscoveryListener) -> None:
        """Removes a listener. The group is left with its last one."""
        group = self.groups[name]
        at = group.listeners.index(listener)
        del group.listeners[at]
        del group.users[at]
        if not group.listeners:
            del self.groups[name]
            self._leave(group)
            self.timers.cancel(WAIT + name)
            self.timers.cancel(EXPIRE + name)

    def _leave(self, group: DiscoveryGroup) -> None:
        """Leaves the place of a group: nothing is heard there any more."""
        self.links.leave(HEARS + group.config.name)
        for channel in list(self.channels):
            if group in channel.groups:
                channel.groups.remove(group)
                self.release(channel)

    def entries(self, name: str) -> dict[str, TransportConfiguration]:
        """Returns the connectors of a group with listeners, by node id."""
        group = self.groups.get(name)
        if group is None:
            return {}
        return {node_id: entry.connector for node_id, entry in group.entries.items()}

    def _join(self, now: int, group: DiscoveryGroup) -> None:
        config = group.config
        if config.stack is not None:
            self.channel(now, config.stack).groups.append(group)
        elif config.group_address is not None:
            self.links.join(
                HEARS + config.name,
                config.group_address,
                config.group_port,
                config.local_bind_address or "",
                config.local_bind_port,
            )
        wait_ns = config.initial_wait_timeout_ms * MILLISECOND_NS
        self.timers.set(WAIT + config.name, now + wait_ns)

    def channel(self, now: int, stack: JgroupsStack) -> JgroupsChannel:
        """Returns the JGroups channel that all groups of the same stack and channel share.

        The first tick of a new one is in the next event-loop iteration.
        """
        for channel in self.channels:
            if channel.stack == stack:
                return channel
        made = CHANNELS[stack.kind](self, self.channels_made, stack)
        self.channels_made += 1
        self.channels.append(made)
        made.open(now)
        self.timers.set(made.key, now)
        return made

    def release(self, channel: JgroupsChannel) -> None:
        """Leaves a channel that no group uses any more."""
        if not channel.groups and channel.broadcast is None and not self.stopping:
            self.channels.remove(channel)
            self.timers.cancel(channel.key)
            channel.end()

    # -- a changed configuration ----------------------------------------------------------------
    def reload(self, now: int, fresh: ClusterSettings) -> None:
        """Adds and changes groups, and removes broadcast groups. The discovery groups that are no longer in the file
        are removed by `forget_unused`, when their users are gone."""
        self.settings.discovery_groups = {**self.settings.discovery_groups, **fresh.discovery_groups}
        for name, config in fresh.discovery_groups.items():
            group = self.groups.get(name)
            if group is not None and group.config != config:
                self._change(now, group, config)
        self.settings.broadcast_groups = fresh.broadcast_groups
        self.broadcasts.reload(now, fresh.broadcast_groups)

    def _change(self, now: int, group: DiscoveryGroup, config: DiscoveryGroupConfig) -> None:
        if config.same_place(group.config):
            group.change(config)
        else:
            self._leave(group)
            group.change(config)
            self._join(now, group)
        if group.entries:
            self.timers.set(EXPIRE + config.name, now)
        self.trace.event("discovery_group_changed", {"group": config.name, "place": config.place})

    def forget_unused(self, fresh: ClusterSettings, named: dict[str, str]) -> None:
        """Removes the discovery groups that are no longer in the file. One that somebody uses stays until then:
        `named` has those who would listen later, by group."""
        for name in [each for each in self.settings.discovery_groups if each not in fresh.discovery_groups]:
            group = self.groups.get(name)
            users = [named[name]] if group is None and name in named else [] if group is None else group.users
            if not users:
                del self.settings.discovery_groups[name]
                self.trace.event("discovery_group_removed", {"group": name})
            else:
                how = "remove them, and read the configuration again: the group is used until then"
                self.trace.event(
                    "discovery_group_kept", {"group": name, "users": ", ".join(users), "what_to_do": how}
                )

    # -- announcing -----------------------------------------------------------------------------
    def announcement(self, broadcast: BroadcastGroupConfig) -> bytes:
        """Returns the announcement of a broadcast group, with all its connectors."""
        connectors = [self.settings.transport(name) for name in broadcast.connectors]
        return encode_announcement(Announcement(self.node_id, self.unique_id, connectors))

    # -- time -----------------------------------------------------------------------------------
    def on_timer(self, now: int, key: str) -> None:
        if self.stopping:
            return
        if key.startswith(CHANNEL):
            channel, _ = self._at(key)
            if channel is not None:
                channel.tick(now)
                self.timers.set(key, now + channel.period_ns())
            return
        if key.startswith(BROADCAST):
            self.broadcasts.on_timer(now, key[len(BROADCAST) :])
            return
        name = key[len(EXPIRE) :] if key.startswith(EXPIRE) else key[len(WAIT) :]
        group = self.groups.get(name)
        if group is None:
            return
        if key.startswith(EXPIRE):
            self._expire(now, group)
        elif not group.has_announcements:
            waited_ms = group.config.initial_wait_timeout_ms
            self.trace.event("discovery_no_announcement", {"group": name, "ms": waited_ms})

    def _expire(self, now: int, group: DiscoveryGroup) -> None:
        """Removes nodes that were silent for refresh-timeout, and sets the timer for the next one that may expire."""
        due = 0
        for node_id, entry in list(group.entries.items()):
            ends = entry.announced_ns + group.refresh_ns
            if ends <= now:
                del group.entries[node_id]
                self.trace.event(
                    "discovery_silent", {"group": group.config.name, "node": node_id}
                )
                for listener in list(group.listeners):
                    listener.undiscovered(now, node_id)
            elif not due or ends < due:
                due = ends
        if due:
            self.timers.set(EXPIRE + group.config.name, due)

    # -- JGroups channels ---------------------------------------------------------------------------
    def _at(self, key: str) -> tuple[JgroupsChannel | None, str]:
        """Returns the JGroups channel of a key "discovery.channel.<number>.<rest>", and its rest."""
        number, _, rest = key[len(CHANNEL) :].partition(".")
        return self._numbered(number), rest

    def _numbered(self, number: str) -> JgroupsChannel | None:
        """Returns the channel of that number; None if it was left meanwhile."""
        return next((channel for channel in self.channels if str(channel.number) == number), None)

    def on_dialed(self, now: int, conn: int, key: str) -> TransportConnection | None:
        channel, rest = self._at(key)
        return None if self.stopping or channel is None else channel.on_dialed(now, conn, rest)

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        channel, rest = self._at(key)
        if channel is not None:
            channel.on_dial_failed(now, rest)

    def on_accepted(self, now: int, conn: int, key: str, remote: str) -> TransportConnection | None:
        channel = self._named(key)
        return None if self.stopping or channel is None else channel.on_accepted(now, conn, remote)

    def _named(self, name: str) -> JgroupsChannel | None:
        """Returns the channel of a listener or group "jgroups/<number>" or "jgroups/<number>/<rest>"."""
        return self._numbered(name[len(JGROUPS_PREFIX) :].partition("/")[0])

    def on_resolved(self, now: int, key: str, channels: list[tuple[str, int]], why: str) -> None:
        channel, rest = self._at(key)
        if channel is not None and not self.stopping:
            channel.on_resolved(now, rest, channels, why)

    def on_posted(self, now: int, key: str, files: dict[str, bytes], why: str) -> None:
        channel, rest = self._at(key)
        if channel is not None and not self.stopping:
            channel.on_posted(now, rest, files, why)

    # -- receiving ------------------------------------------------------------------------------
    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        if group.startswith(JGROUPS_PREFIX):
            channel = self._named(group)
            if channel is not None:
                channel.on_datagram(now, data)
        elif group.startswith(HEARS):
            found = self.groups.get(group[len(HEARS) :])
            if found is not None:
                self.on_announcement(now, found, data)

    def on_announcement(self, now: int, group: DiscoveryGroup, data: bytes) -> None:
        """Handles an announcement. Any host can send datagrams: unreadable ones are counted and dropped."""
        try:
            announcement = decode_announcement(data)
        except ProtocolError:
            self.trace.count("datagrams_unreadable")
            return
        if announcement.node_id == self.node_id:
            if announcement.unique_id != self.unique_id:
                self._record_duplicate_id(now, group, announcement)
            return
        if not announcement.connectors:
            return
        connector = announcement.connectors[-1]
        self._see(now, group, announcement, connector)
        entry = group.entries.get(announcement.node_id)
        if entry is None:
            if len(group.entries) >= FOUND_MAX:
                self.trace.count("discovery_overflow")
                return
            if not group.entries:
                self.timers.set(EXPIRE + group.config.name, now + group.refresh_ns)
            group.entries[announcement.node_id] = DiscoveredNode(connector, now)
            group.has_announcements = True
        else:
            entry.connector = connector
            entry.announced_ns = now
        for listener in list(group.listeners):
            listener.discovered(now, announcement.node_id, connector)

    def _record_duplicate_id(self, now: int, group: DiscoveryGroup, announcement: Announcement) -> None:
        """Records another process with this node's id. Its first announcement may be an echo of our earlier run."""
        if group.twin != announcement.unique_id:
            group.twin = announcement.unique_id
        elif not group.duplicate_reported_ns or now - group.duplicate_reported_ns >= group.refresh_ns:
            group.duplicate_reported_ns = now
            channels = [each.address for each in announcement.connectors]
            self.trace.event(
                "duplicate_node_id",
                {"node": announcement.node_id, "other": " ".join(channels), "what_to_do": WHAT_TO_DO},
            )

    def _see(
        self, now: int, group: DiscoveryGroup, announcement: Announcement, connector: TransportConfiguration
    ) -> None:
        channel = connector.address
        channels = group.sightings.see(now, announcement.node_id, announcement.unique_id, channel)
        if channels is not None:
            report_shared_id(self.trace, announcement.node_id, channels[0], channels[1])
