"""Checks of one file's cluster connections: settings that are allowed, but most likely not intended."""

from __future__ import annotations

from atalanta.cluster.address_prefixes import Covered, overlaps, shown
from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.config.checks.reachability import reaches
from atalanta.config.configuration import Configuration
from atalanta.wire.loopback import is_loopback

OLD_PREFIX = "jms"


def link_warnings(configuration: Configuration) -> list[str]:
    """Returns the warnings that are given at every start and by `atalanta check`."""
    connections = configuration.cluster_connections
    warnings: list[str] = []
    for first, second, common in overlaps([(each.name, each.address) for each in connections]):
        warnings.append(
            f"cluster-connections '{first}' and '{second}' share {shown(common)}: a queue that is reached by both"
            " belongs to whichever comes first; give them addresses that do not overlap"
        )
    for connection in connections:
        text = covers_nothing(configuration, connection)
        if text is not None:
            warnings.append(text)
    if len(connections) > 1:
        warnings.extend(_acceptor_warnings(configuration))
    return warnings


def password_warnings(configuration: Configuration) -> list[str]:
    """Returns the warnings of cluster passwords that discovered addresses get without TLS, for each start.

    Only with `cluster-plain-password`: else they must prove that they know it.

    A UDP group on loopback is one machine's own.
    """
    warnings: list[str] = []
    if not configuration.own.cluster_plain_password:
        return warnings
    for connection in configuration.cluster_connections:
        group = configuration.discovery_groups.get(connection.discovery_group or "")
        own = configuration.connectors.get(connection.connector)
        if group is None or own is None or own.tls is not None:
            continue
        if not is_loopback(group.local_bind_address or ""):
            warnings.append(
                f"cluster-connection '{connection.name}' finds nodes by discovery-group '{group.name}', without TLS:"
                " any host that can announce itself there gets the cluster password in clear text; use sslEnabled or"
                " static-connectors, and no cluster-plain-password"
            )
    return warnings


def covers_nothing(configuration: Configuration, connection: ClusterConnectionConfig) -> str | None:
    """Returns a warning if no configured address begins with a prefix in `address`.

    Returns None where no address is configured. `jms`, which stood for everything in version 1, is told with its line
    (config/version_1/name_warnings.py).
    """
    covered = Covered(connection.address)
    if not covered.included:
        return None
    names = [address.name for address in configuration.broker.addresses]
    if any(covered.covers(name) for name in names):
        return None
    if not names or any(prefix.startswith(OLD_PREFIX) for prefix in covered.included):
        return None
    return (
        f"cluster-connection '{connection.name}': no configured queue has an address that"
        f" '{connection.address}' covers, so none is shared"
    )


def _acceptor_warnings(configuration: Configuration) -> list[str]:
    """Warns of cluster connections without an acceptor of their own. Peers and clients of each connect there."""
    warnings: list[str] = []
    connections = configuration.cluster_connections
    served = {acceptor.cluster_connection or connections[0].name for acceptor in configuration.acceptors}
    for connection in connections:
        if connection.name not in served:
            warnings.append(
                f"cluster-connection '{connection.name}' has no acceptor (clusterConnection={connection.name}):"
                f" clients that connect get the topology of another one"
            )
            continue
        announced = configuration.connectors.get(connection.connector)
        for acceptor in configuration.acceptors:
            serves = acceptor.cluster_connection or connections[0].name
            if announced and reaches(announced, acceptor) and serves != connection.name:
                warnings.append(
                    f"cluster-connection '{connection.name}' announces connector '{announced.name}', which leads to"
                    f" acceptor '{acceptor.name}' of cluster-connection '{serves}'"
                )
    return warnings
