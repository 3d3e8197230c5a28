"""Dialer of the targets of connection routers. Credentials are as safe on the way as on cluster links."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterSettings
    from atalanta.cluster.connection.cluster_connections import ClusterConnections
    from atalanta.kernel.ports import Links
    from atalanta.wire.core.transport import TransportConfiguration


class TargetDialer:
    """Dials through the first cluster connection if there is one, else with the settings of the named connector."""

    def __init__(self, settings: ClusterSettings, clusters: ClusterConnections | None, links: Links) -> None:
        self.settings = settings
        self.clusters = clusters
        self.links = links

    def dial(self, key: str, target: TransportConfiguration) -> None:
        named = self.settings.connectors.get(target.name)
        written = named is not None and (named.host, named.port) == (target.host, target.port)
        if named is not None and written:
            if named.tls is not None:
                self.links.dial_secure(
                    key, target.host, target.port, named.name, named.connect_timeout_ms
                )
            else:
                self.links.dial_within(key, target.host, target.port, named.connect_timeout_ms)
        elif self.clusters is not None:
            self.clusters.connections[0].dialer.dial(key, target)
        elif target.parameters.get("sslEnabled", "").lower() == "true":
            secure = [each for each in self.settings.connectors.values() if each.tls is not None]
            name = secure[0].name if secure else target.name
            self.links.dial_secure(key, target.host, target.port, name, -1)
        else:
            self.links.dial_within(key, target.host, target.port, -1)
