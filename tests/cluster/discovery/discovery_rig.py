"""Discovery of one node, and what others broadcast to it."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.cluster.config import BroadcastGroupConfig, ClusterSettings, DiscoveryGroupConfig
from atalanta.cluster.discovery.discovery import Discovery
from atalanta.sim.host import Host
from atalanta.wire.jgroups_discovery import JgroupsStack
from tests.cluster.cluster_rig import node_of


def discovery_of(host: Host) -> Discovery:
    part = node_of(host).parts["discovery"]
    assert isinstance(part, Discovery)
    return part


def broadcast(settings: ClusterSettings) -> BroadcastGroupConfig:
    return settings.broadcast_groups[0]


def group_config(settings: ClusterSettings) -> DiscoveryGroupConfig:
    return settings.discovery_groups["group"]


def at(stack: JgroupsStack, period_ms: int = 500) -> Callable[[ClusterSettings], None]:
    """Gives both groups the stack."""

    def change(settings: ClusterSettings) -> None:
        for group in (broadcast(settings), group_config(settings)):
            group.group_address, group.group_port = None, -1
            group.stack = stack
        broadcast(settings).broadcast_period_ms = period_ms
        group_config(settings).refresh_timeout_ms = 4_000

    return change
