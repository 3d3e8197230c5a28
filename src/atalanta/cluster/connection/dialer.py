"""Dialer of a cluster connection: opens connections to members, with TLS where this node's connectors have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.encoding.digits import all_digits

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
    from atalanta.kernel.ports import Links
    from atalanta.wire.core.transport import TransportConfiguration

CONNECT_TIMEOUT_MAX_MS: Final = 600_000


class MemberDialer:
    """Dials the connectors of members for one cluster connection."""

    def __init__(
        self, config: ClusterConnectionConfig, settings: ClusterSettings, links: Links
    ) -> None:
        self.config = config
        self.settings = settings
        self.links = links

    def dial(self, key: str, target: TransportConfiguration) -> None:
        """Dials a connector. The TLS settings come from a connector of this node.

        The connector that a peer announces holds no secrets, and it proves nothing. A node that announces TLS for
        itself never logs in at another node over a plain connection, whatever that node announces. The only
        exception is a static connector without TLS.
        """
        connectors = self.settings.connectors
        named = connectors.get(target.name)
        own = connectors[self.config.connector]
        timeout_ms = connect_timeout_ms(target)
        if named is not None and self._is_static(target):
            timeout_ms = named.connect_timeout_ms
        if not self.is_secure(target):
            self.links.dial_within(key, target.host, target.port, timeout_ms)
        elif named is not None and named.tls is not None:
            self.links.dial_secure(key, target.host, target.port, target.name, timeout_ms)
        else:
            self.links.dial_secure(key, target.host, target.port, own.name, timeout_ms)

    def is_secure(self, target: TransportConfiguration) -> bool:
        """Returns whether a connector is dialed with TLS."""
        if target.parameters.get("sslEnabled", "").lower() == "true":
            return True
        return self.settings.connectors[self.config.connector].tls is not None and not self._is_static(target)

    def _is_static(self, target: TransportConfiguration) -> bool:
        return target.name in self.config.static_connectors and target.name in self.settings.connectors


def connect_timeout_ms(target: TransportConfiguration) -> int:
    """Returns connect-timeout-millis of a connector, at most 600 s; -1 if it is missing, 0 or no number."""
    text = target.parameters.get("connect-timeout-millis", "")
    if not all_digits(text, 9):
        return -1
    return min(int(text), CONNECT_TIMEOUT_MAX_MS) or -1
