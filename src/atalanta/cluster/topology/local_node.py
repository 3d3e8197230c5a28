"""This node as one of its cluster connections presents it to the members: its configuration, its own entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.topology.topology import Member

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
    from atalanta.wire.host import Host


class LocalNode:
    """The local end of a cluster connection.

    `event_id` (ms) is that of this node's last announcement. `prefix` begins the keys of all dials and timers of the
    cluster connection.
    """

    def __init__(
        self, config: ClusterConnectionConfig, settings: ClusterSettings, number: int, host: Host
    ) -> None:
        broker = host.broker
        self.config = config
        self.settings = settings
        self.host = host
        self.node_id: str = broker.node_id
        self.timers = broker.timers
        self.trace = broker.trace
        self.ids = broker.ids
        self.prefix: str = f"cluster.{number}."
        self.event_id: int = 0

    def member(self) -> Member:
        """Returns this node's own entry in the topology."""
        scale_down = self.settings.scale_down
        group = None if scale_down is None else scale_down.group_name
        connector = self.settings.transport(self.config.connector)
        return Member(self.node_id, self.event_id, connector, None, None, group)

    def unique_name(self) -> str:
        """Returns a new name for a session or a queue, unique across all nodes."""
        return self.ids.uuid().hex()

    def forward_name(self, node_id: str) -> str:
        """Returns the name of a node's store-and-forward queue, `$.artemis.internal.sf.<cluster>.<node>`."""
        return f"{self.settings.internal_naming_prefix}sf.{self.config.name}.{node_id}"

    # -- timers ---------------------------------------------------------------------------------
    def key(self, rest: str) -> str:
        """Returns the key of a dial or timer of this cluster connection."""
        return self.prefix + rest

    def set_timer(self, rest: str, at_ns: int) -> None:
        self.timers.set(self.prefix + rest, at_ns)

    def cancel_timer(self, rest: str) -> None:
        self.timers.cancel(self.prefix + rest)

    # -- events ---------------------------------------------------------------------------------
    def report(self, event: str, node_id: str, why: str) -> None:
        """Records an event about a node."""
        self.trace.event(event, {"node": node_id, "why": why})
