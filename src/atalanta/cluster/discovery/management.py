"""Management of broadcast and discovery groups: resources `broadcastgroup.NAME` (BroadcastGroupControl,
JGroupsFileBroadcastGroupControl), and `discoverygroup.NAME`, which Artemis has not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.controls.control import Control
from atalanta.management.request.call import Attribute, Attributes, Call, Parameters
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.cluster.config import DiscoveryGroupConfig
    from atalanta.cluster.discovery.broadcast_groups import BroadcastGroup
    from atalanta.cluster.discovery.discovery import Discovery
    from atalanta.management.resources.registry import ResourceRegistry

# The name of the JGroups channel that a group without a name of its own uses is in its stack.
BROADCAST_ATTRIBUTES: Final[dict[str, Callable[[BroadcastGroup], object]]] = {
    "Name": lambda group: group.config.name,
    "BroadcastPeriod": lambda group: group.config.broadcast_period_ms,
    "ConnectorPairs": lambda group: list(group.config.connectors),
    "ConnectorPairsAsJSON": lambda group: encode_json(group.config.connectors),
    "GroupAddress": lambda group: group.config.group_address,
    "GroupPort": lambda group: group.config.group_port,
    "LocalBindPort": lambda group: group.config.local_bind_port,
    "ChannelName": lambda group: None if group.config.stack is None else group.config.stack.channel,
    "File": lambda group: group.config.jgroups_file,
    "Started": lambda group: group.started,
    # Additions to Artemis.
    "LocalBindAddress": lambda group: group.config.local_bind_address,
    "Place": lambda group: group.config.place,
}
DISCOVERY_ATTRIBUTES: Final[dict[str, Callable[[DiscoveryGroupConfig], object]]] = {
    "Name": lambda config: config.name,
    "GroupAddress": lambda config: config.group_address,
    "GroupPort": lambda config: config.group_port,
    "LocalBindAddress": lambda config: config.local_bind_address,
    "RefreshTimeout": lambda config: config.refresh_timeout_ms,
    "InitialWaitTimeout": lambda config: config.initial_wait_timeout_ms,
    "ChannelName": lambda config: None if config.stack is None else config.stack.channel,
    "File": lambda config: config.jgroups_file,
    "Place": lambda config: config.place,
}


def register_groups(discovery: Discovery, resources: ResourceRegistry) -> None:
    """Registers the resources of the groups, and their names as attributes of `broker` (an addition to Artemis)."""
    resources.register_control("broadcastgroup", BroadcastGroupControl(discovery))
    resources.register_control("discoverygroup", DiscoveryGroupControl(discovery))
    names: Attributes = {
        "BroadcastGroupNames": lambda call: list(discovery.broadcasts.by_name),
        "DiscoveryGroupNames": lambda call: list(discovery.settings.discovery_groups),
    }
    resources.extend_broker(names, {})


class BroadcastGroupControl(Control):
    """The control of the broadcast groups."""

    def __init__(self, discovery: Discovery) -> None:
        self.discovery = discovery
        super().__init__(
            {name: self._attribute(getter) for name, getter in BROADCAST_ATTRIBUTES.items()},
            {"start": [("", self.start)], "stop": [("", self.stop)]},
        )

    def select(self, call: Call) -> bool:
        return call.name in self.discovery.broadcasts.by_name

    def _attribute(self, getter: Callable[[BroadcastGroup], object]) -> Attribute:
        return lambda call: getter(self.discovery.broadcasts.by_name[call.name])

    def start(self, call: Call, given: Parameters) -> object:
        """Starts the group: this node is announced at once."""
        if not self.discovery.serving:
            raise BrokerError(ILLEGAL_STATE, "the node leaves or stops: it does not announce itself any more")
        call.command.begin_change()
        broadcasts = self.discovery.broadcasts
        broadcasts.start(call.now, broadcasts.by_name[call.name])
        return None

    def stop(self, call: Call, given: Parameters) -> object:
        """Stops the group until it is started, or the node starts again. Links that are open stay."""
        call.command.begin_change()
        broadcasts = self.discovery.broadcasts
        broadcasts.stop(broadcasts.by_name[call.name])
        return None


class DiscoveryGroupControl(Control):
    """The control of the discovery groups. A group hears only while somebody uses it: `Started`, `Users`."""

    def __init__(self, discovery: Discovery) -> None:
        self.discovery = discovery
        super().__init__(
            {
                **{name: self._attribute(getter) for name, getter in DISCOVERY_ATTRIBUTES.items()},
                "Started": lambda call: call.name in discovery.groups,
                "Users": self.users,
            },
            {"listHeardNodes": [("", self.list_heard_nodes)]},
        )

    def select(self, call: Call) -> bool:
        return call.name in self.discovery.settings.discovery_groups

    def _attribute(self, getter: Callable[[DiscoveryGroupConfig], object]) -> Attribute:
        return lambda call: getter(self.discovery.settings.discovery_groups[call.name])

    def users(self, call: Call) -> object:
        """Returns who uses the group, such as `cluster-connection NAME` and `bridge NAME`."""
        group = self.discovery.groups.get(call.name)
        return [] if group is None else list(group.users)

    def list_heard_nodes(self, call: Call, given: Parameters) -> object:
        """Returns the nodes that are heard as JSON: the connector of each, and when it was heard and lapses, in ms."""
        group = self.discovery.groups.get(call.name)
        entries = {} if group is None else group.entries
        refresh_ns = 0 if group is None else group.refresh_ns
        return encode_json(
            [
                {
                    "nodeID": node_id,
                    "connector": entry.connector.name,
                    "address": entry.connector.address,
                    "heardAt": entry.announced_ns // 1_000_000,
                    "lapsesAt": (entry.announced_ns + refresh_ns) // 1_000_000,
                }
                for node_id, entry in entries.items()
            ]
        )
