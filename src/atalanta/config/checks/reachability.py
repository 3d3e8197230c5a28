"""Which acceptor the connections of a connector may reach."""

from __future__ import annotations

from typing import Final

from atalanta.wire.core.config import AcceptorConfig, ConnectorConfig

WILDCARD_HOSTS: Final = ("0.0.0.0", "::", "")


def is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or host == "::1"


def reaches(connector: ConnectorConfig, acceptor: AcceptorConfig) -> bool:
    """Tells whether connections of this connector may arrive at the acceptor. A wildcard acceptor matches any host."""
    if connector.port != acceptor.port:
        return False
    if acceptor.host in WILDCARD_HOSTS or connector.host == acceptor.host:
        return True
    return is_loopback(connector.host) and acceptor.host == "localhost"
