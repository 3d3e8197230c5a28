"""Clustering: who is there, what they hold, and how messages get to them. Pure."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.cluster.config import (
        OFF,
        OFF_WITH_REDISTRIBUTION,
        ON_DEMAND,
        STRICT,
        BroadcastGroupConfig,
        ClusterConnectionConfig,
        ClusterSettings,
        DiscoveryGroupConfig,
    )
    from atalanta.cluster.connection.cluster_connection import ClusterConnection
    from atalanta.cluster.core_bridges.config import CoreBridgeConfig
    from atalanta.cluster.discovery.dns import DNS_PLACE, dns_names
    from atalanta.cluster.native_config import OwnSettings
    from atalanta.cluster.store_and_forward.parked_messages import PARKED
else:
    __getattr__ = face(__name__)

__all__ = [
    "DNS_PLACE", "OFF", "OFF_WITH_REDISTRIBUTION", "ON_DEMAND", "PARKED", "STRICT",
    "BroadcastGroupConfig", "ClusterConnection", "ClusterConnectionConfig", "ClusterSettings",
    "CoreBridgeConfig", "DiscoveryGroupConfig", "OwnSettings", "dns_names",
]
