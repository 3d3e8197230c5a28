"""A reloaded configuration, applied to the parts of a node.

What is added comes before those that use it, and what is removed goes behind them: one reload may add a discovery
group and the bridge that names it, or remove both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.networks.settings import NetworkSettings

if TYPE_CHECKING:
    from atalanta.cluster.grouping.config import GroupingHandlerConfig
    from atalanta.node.config import NodeConfig
    from atalanta.node.parts import Parts


class PartsReload:
    """The reload of the parts. What is not named here counts after a restart (config/restart.py)."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def apply(self, now: int, config: NodeConfig) -> None:
        """Applies the configuration. A node that scales down changes nothing: its messages may be at the target
        already, and nobody is to find it."""
        parts = self.parts
        if parts.scale_down is not None and parts.scale_down.frozen:
            return
        discovery = parts.discovery
        fresh = config.cluster or config.bridges.discovery()
        discovery.settings.reload_connectors(fresh.connectors)
        if parts.clusters is not None:
            parts.resources.replace_connectors(
                {name: each.transport_params() for name, each in discovery.settings.connectors.items()}
            )
        discovery.reload(now, fresh)
        if parts.clusters is not None and config.cluster is not None:
            parts.clusters.reload(now, config.cluster.cluster_connections)
            parts.follow_connections()
        self._reload_grouping(now, config.grouping)
        parts.bridges.reload(now, config.bridges)
        if parts.routers is not None:
            parts.routers.reload(now, config.routers)
        self._reload_networks(config.networks)
        parts.doors.reload(config.acceptors)
        if parts.balancers is not None:
            parts.balancers.follow(now)
        discovery.forget_unused(fresh, self._named_groups())

    def _named_groups(self) -> dict[str, str]:
        """Returns who may listen to a discovery group later, by group: stopped bridges, and a scale-down."""
        parts = self.parts
        named = {
            config.discovery_group: f"bridge {name}"
            for name, config in parts.bridges.configs.items()
            if config.discovery_group is not None
        }
        scale_down = None if parts.clusters is None else parts.clusters.settings.scale_down
        if scale_down is not None and scale_down.discovery_group is not None:
            named[scale_down.discovery_group] = "scale-down"
        return named

    def _reload_grouping(self, now: int, fresh: GroupingHandlerConfig | None) -> None:
        """Adds the grouping handler, if no group is bound here yet. It changes and goes with a restart only."""
        parts = self.parts
        running = None if parts.grouping is None else parts.grouping.config
        if fresh == running or parts.clusters is None:
            return
        queues = parts.host.broker.queues.values()
        bound = next((queue.name for queue in queues if queue.groups is not None and queue.groups.pins), "")
        if fresh is None or running is not None or bound:
            why = "the nodes of the cluster keep its decisions"
            if bound and running is None:
                why = f"groups of the queue {bound} are bound to consumers here, and would go elsewhere meanwhile"
            what = "start the node again: the handler of the file counts from then on"
            parts.host.broker.trace.event("grouping_handler_kept", {"why": why, "what_to_do": what})
            return
        grouping = parts.keep_groups(fresh, parts.clusters.settings)
        grouping.start(now)
        for bindings in parts.clusters.peer_bindings():
            for cluster_name in bindings.bindings:
                grouping.remote_added(now, cluster_name)
            if bindings.complete:
                grouping.peer_complete(now, bindings.node_id)
        parts.host.broker.trace.event("grouping_handler_added", {"type": fresh.type, "address": fresh.address})

    def _reload_networks(self, settings: NetworkSettings) -> None:
        """Creates the part for the first network connector, or changes those of the node."""
        networks = self.parts.networks
        if networks is not None:
            networks.reload(settings)
        elif len(settings.connectors) > len(settings.heard()):
            made = self.parts.join_networks(NetworkSettings())
            if made is not None:
                made.reload(settings)
