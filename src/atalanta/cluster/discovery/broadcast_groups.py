"""The broadcast groups of a node: what announces its connectors, by UDP or in a JGroups channel.

A group that an operator has stopped stays silent until it is started, or until the node starts again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.config import BroadcastGroupConfig
    from atalanta.cluster.discovery.discovery import Discovery
    from atalanta.cluster.discovery.jgroups_channels import JgroupsChannel

BROADCAST: Final = "discovery.broadcast."  # prefix of timers
SENDS: Final = "broadcast/"  # prefix of names of groups at the Links port
MILLISECOND_NS: Final = 1_000_000


class BroadcastGroup:
    """A broadcast group. `started`: it announces this node. `channel` is the JGroups channel that it sends to."""

    def __init__(self, config: BroadcastGroupConfig) -> None:
        self.config = config
        self.started = False
        self.channel: JgroupsChannel | None = None


class BroadcastGroups:
    """The broadcast groups by name, in the order of broker.xml."""

    def __init__(self, discovery: Discovery) -> None:
        self.discovery = discovery
        self.by_name: dict[str, BroadcastGroup] = {}

    def open(self, now: int, configs: list[BroadcastGroupConfig]) -> None:
        """Starts all groups, when the node starts."""
        for config in configs:
            group = BroadcastGroup(config)
            self.by_name[config.name] = group
            self._begin(now, group)

    def close(self) -> None:
        """Leaves all UDP groups, when the node stops."""
        for group in self.by_name.values():
            if group.started and group.channel is None:
                self.discovery.links.leave(SENDS + group.config.name)

    # -- start and stop -------------------------------------------------------------------------
    def start(self, now: int, group: BroadcastGroup) -> None:
        """Starts a group, and announces this node at once. Does nothing if it is started."""
        if not group.started:
            self._begin(now, group)
            if group.channel is not None:
                self.discovery.timers.set(group.channel.key, now)
            self.discovery.trace.event(
                "broadcast_group_started", {"group": group.config.name, "place": group.config.place}
            )

    def stop(self, group: BroadcastGroup) -> None:
        """Stops a group: it is silent from now on. Does nothing if it is stopped."""
        if group.started:
            self._end(group)
            self.discovery.trace.event(
                "broadcast_group_stopped", {"group": group.config.name, "place": group.config.place}
            )

    def _begin(self, now: int, group: BroadcastGroup) -> None:
        config, discovery = group.config, self.discovery
        if config.stack is not None:
            group.started = True
            group.channel = discovery.channel(now, config.stack)
            group.channel.broadcast = config
        elif config.group_address is not None:
            group.started = True
            discovery.links.join_to_send(
                SENDS + config.name,
                config.group_address,
                config.group_port,
                config.local_bind_address or "",
                config.local_bind_port,
            )
            self._broadcast(now, config)

    def _end(self, group: BroadcastGroup) -> None:
        discovery, channel = self.discovery, group.channel
        group.started = False
        group.channel = None
        if channel is None:
            discovery.timers.cancel(BROADCAST + group.config.name)
            discovery.links.leave(SENDS + group.config.name)
        elif channel.broadcast is group.config:
            others = [each.config for each in self.by_name.values() if each.channel is channel]
            if not others:
                channel.fall_silent()
            channel.broadcast = others[-1] if others else None
            discovery.release(channel)

    # -- a changed configuration ----------------------------------------------------------------
    def reload(self, now: int, configs: list[BroadcastGroupConfig]) -> None:
        """Adds, changes and removes groups. One that an operator has stopped stays so, also with other settings."""
        wanted = {config.name: config for config in configs}
        known = self.by_name
        begun: list[BroadcastGroup] = []
        for name, group in known.items():
            config = wanted.get(name)
            if config is None:
                self.stop(group)
            elif config != group.config:
                if group.started and not self._adapted(now, group, config):
                    self._end(group)
                    begun.append(group)
                group.config = config
        self.by_name = {}
        for config in configs:
            group = known.get(config.name) or BroadcastGroup(config)
            self.by_name[config.name] = group
            if config.name not in known:
                begun.append(group)
        for group in begun:
            self.start(now, group)

    def _adapted(self, now: int, group: BroadcastGroup, config: BroadcastGroupConfig) -> bool:
        """Announces with other settings in the JGroups channel of a group; False if it has another place."""
        channel = group.channel
        if channel is None or config.stack != group.config.stack:
            return False
        if channel.broadcast is group.config:
            channel.broadcast = config
        self.discovery.timers.set(channel.key, now)
        return True

    # -- announcing -----------------------------------------------------------------------------
    def _broadcast(self, now: int, config: BroadcastGroupConfig) -> None:
        """Sends the announcement now, and sets the timer for the next one after broadcast-period."""
        discovery = self.discovery
        discovery.links.multicast(SENDS + config.name, discovery.announcement(config))
        discovery.timers.set(BROADCAST + config.name, now + config.broadcast_period_ms * MILLISECOND_NS)

    def on_timer(self, now: int, name: str) -> None:
        group = self.by_name.get(name)
        if group is not None and group.started and group.channel is None:
            self._broadcast(now, group.config)
