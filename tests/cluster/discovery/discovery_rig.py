"""Discovery of one node, and what others broadcast to it."""

from __future__ import annotations

from atalanta.cluster.config import BroadcastGroupConfig, ClusterSettings, DiscoveryGroupConfig
from atalanta.cluster.discovery.discovery import Discovery
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import node_of


def discovery_of(host: Host) -> Discovery:
    part = node_of(host).parts["discovery"]
    assert isinstance(part, Discovery)
    return part


def broadcast(settings: ClusterSettings) -> BroadcastGroupConfig:
    return settings.broadcast_groups[0]


def group_config(settings: ClusterSettings) -> DiscoveryGroupConfig:
    return settings.discovery_groups["group"]
