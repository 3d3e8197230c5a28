"""Which changes of elements count after a restart only, and why (config/restart.py has the rule for whole sections)."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.config import FIXED
from atalanta.config.changes.kinds import STATIC_CONNECTORS
from atalanta.config.changes.request import ADD, REMOVE, Change
from atalanta.config.configuration import Configuration
from atalanta.config.restart import REASONS, serves_group
from atalanta.ha.policy import NONE

# What other nodes have of an acceptor from the start on.
PUBLISHED: Final = ("discoveryUri", "rebalanceClusterClients")
FIRST_CONNECTION: Final = "the node was started without a cluster connection: it is no member of a cluster"
ROUTERS: Final = "the node was started without an acceptor that names a router"
HEARD: Final = "the node listens to multicast from its start on"


def fixed_elements(started: Configuration) -> dict[tuple[str, str], str]:
    """Returns the elements of the started node that change or go with a restart only, with the reason."""
    found: dict[tuple[str, str], str] = {}
    settings = started.cluster_settings()
    for name in [] if settings is None else settings.fixed_connectors():
        found["connector", name] = REASONS["connectors"]
    for at, connection in enumerate(started.cluster_connections):
        if at == 0 or started.ha.form != NONE:
            found["cluster-connection", connection.name] = REASONS["cluster-connections"]
    if started.grouping is not None:
        found["grouping-handler", started.grouping.name] = REASONS["grouping-handler"]
    for acceptor in started.acceptors:
        if serves_group(started, acceptor):
            found["acceptor", acceptor.name] = REASONS["acceptors"]
    for network in started.networks.connectors:
        if network.hears():
            found["network-connector", network.name] = HEARD
    return found


def restart_reason(started: Configuration, after: Configuration, change: Change) -> str:
    """Returns why a change counts after a restart only; "" if it counts now."""
    kind, name = change.kind, change.name
    why = fixed_elements(started).get((kind, name), "")
    if kind == "cluster-connection":
        return _of_connection(started, change, why)
    if why:
        return why
    if kind == "grouping-handler" and (change.action != ADD or not started.cluster_connections):
        return REASONS["grouping-handler"]
    if kind == "connection-router" and not _has_routers(started):
        return ROUTERS
    if kind == "acceptor":
        for parameter in PUBLISHED:
            if change.values.get(parameter):
                return f"{parameter}: parts of the node begin with it"
        if change.values.get("router") and not _has_routers(started):
            return ROUTERS
    if kind == "network-connector" and change.action != REMOVE:
        made = [each for each in after.networks.connectors if each.name == name]
        if any(each.hears() for each in made):
            return HEARD
    return ""


def _of_connection(started: Configuration, change: Change, why: str) -> str:
    """Returns the reason of a cluster connection: its settings change now, what others know it by after a restart."""
    if not started.cluster_connections:
        return FIRST_CONNECTION
    if change.action == ADD:
        return REASONS["cluster-connections"] if started.ha.form != NONE else ""
    if change.action == REMOVE:
        return why
    names = {"connector-ref", "allow-direct-connections-only", *(each.replace("_", "-") for each in FIXED)}
    fixed = sorted(names & set(change.values))
    if started.ha.form != NONE and STATIC_CONNECTORS in change.values:
        fixed.append(STATIC_CONNECTORS)
    return f"{', '.join(fixed)}: {REASONS['cluster-connections']}" if fixed else ""


def _has_routers(configuration: Configuration) -> bool:
    return any(acceptor.router is not None for acceptor in configuration.acceptors)
