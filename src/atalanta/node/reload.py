"""A reloaded configuration, applied to the parts of a node.

What is added comes before those that use it, and what is removed goes behind them: one reload may add a discovery
group and the bridge that names it, or remove both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        parts.bridges.reload(now, config.bridges)
        if parts.routers is not None:
            parts.routers.reload(now, config.routers)
        parts.doors.reload(config.acceptors)
        if parts.balancers is not None:
            parts.balancers.follow_acceptors()
        discovery.forget_unused(fresh)
