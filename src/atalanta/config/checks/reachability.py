"""Which acceptor the connections of a connector may reach."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.config import DiscoveryConfig, DiscoveryGroupConfig
from atalanta.config.configuration import Configuration
from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig
from atalanta.wire.loopback import is_loopback

WILDCARD_HOSTS: Final = ("0.0.0.0", "::", "")


def same_host(one: str, two: str) -> bool:
    """Returns whether both names are of one host, as far as they say: loopback addresses are one."""
    return one == two or (is_loopback(one) and is_loopback(two))


def host_of(configuration: Configuration, otherwise: str) -> str:
    """Returns the host that the node announces or listens on; `otherwise` if it names only "every address"."""
    connections = configuration.cluster_connections
    connector = configuration.connectors.get(connections[0].connector) if connections else None
    hosts = [] if connector is None else [connector.host]
    hosts += [acceptor.host for acceptor in configuration.acceptors]
    for host in hosts:
        if host not in WILDCARD_HOSTS:
            return "localhost" if is_loopback(host) else host
    return otherwise


def reaches(connector: ConnectorConfig, acceptor: AcceptorConfig) -> bool:
    """Returns whether this connector's connections may arrive at the acceptor. A wildcard acceptor matches any host."""
    if connector.port != acceptor.port:
        return False
    if acceptor.host in WILDCARD_HOSTS or connector.host == acceptor.host:
        return True
    return is_loopback(connector.host) and acceptor.host == "localhost"


def hears(group: DiscoveryGroupConfig, speaker: Configuration) -> bool:
    """Returns whether `group` receives the broadcasts of that node."""
    return any(group_key(each) == group_key(group) and each.connectors for each in speaker.broadcast_groups)


def group_key(group: DiscoveryConfig) -> str:
    """Returns the text that is equal for two groups that meet: multicast address, or JGroups channel."""
    stack = group.stack
    if stack is None:
        return f"{group.group_address}:{group.group_port}"
    return f"{stack.protocol}, {stack.describe()}, channel {stack.channel}"
