"""The parts of a changed configuration that take effect only after a restart."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

from atalanta.config.configuration import Configuration
from atalanta.ha.policy import NONE
from atalanta.wire.endpoint import TLS_FIELDS, AcceptorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor

# Fields of BrokerConfig that a reload applies (Broker.reload, ConfiguredResources.reload).
RELOADED: Final = {"addresses", "address_settings", "security_rules", "stored", "diverts"}
# Parameters of acceptors that a reload applies: keys and certificates (app/configuration_files.py), domains
# (wire/endpoint.py).
ACCEPTOR_RELOADED: Final = {*TLS_FIELDS, "securityDomain"}

# Why a part that clustering has changes with a restart only; other parts are what the node begins with.
REASONS: Final = {
    "acceptors": "the members of the replicated group come in at them",
    "cluster-connections": "members know the node by them, and have bindings and queues by them",
    "connectors": "links were made with them, and others know the node by them",
    "grouping-handler": "the nodes of the cluster keep its decisions",
}


def restart_reasons(names: list[str]) -> str:
    """Returns why the changes of these parts need a restart, as far as that is not plain."""
    return "; ".join(f"{name}: {REASONS[name]}" for name in names if name in REASONS)


def needs_restart(before: Configuration, after: Configuration) -> list[str]:
    """Returns the names of elements and sections that differ and are not reloaded, sorted."""
    names = _differing(before.broker, after.broker) + _differing(before.journal, after.journal)
    for name, one, two in (
        ("atalanta.toml", replace(before.own, bridges={}), replace(after.own, bridges={})),
        ("acceptors", _fixed_acceptors(before, before), _fixed_acceptors(before, after)),
        ("discoveryUri, rebalanceClusterClients", _published(before), _published(after)),
        ("connectors", _fixed_connectors(before, before), _fixed_connectors(before, after)),
        ("grouping-handler", before.grouping, _added_grouping(before, after)),
        # The first connection router needs an acceptor that names it.
        ("connection-routers", _has_routers(before), _has_routers(after)),
        ("cluster-connections", _fixed_connections(before, before), _fixed_connections(before, after)),
        ("network connectors with multicast", before.networks.heard(), after.networks.heard()),
        ("network-check", before.network_check, after.network_check),
        ("ha-policy", before.ha, after.ha),
        ("scale-down", before.scale_down, after.scale_down),
    ):
        if one != two:
            names.append(name)
    return sorted(names)


def _differing(before: object, after: object) -> list[str]:
    described: Any = before
    return [
        str(entry.metadata.get("xml", entry.name))
        for entry in fields(described)
        if entry.name not in RELOADED and getattr(before, entry.name) != getattr(after, entry.name)
    ]


def _fixed_acceptors(started: Configuration, configuration: Configuration) -> list[tuple[object, ...]]:
    """Returns the acceptors of a replicated group, as far as a reload does not change them, and what others have for
    discovery and rebalancing by OpenWire."""
    fixed = [acceptor.name for acceptor in started.acceptors if serves_group(started, acceptor)]
    return [
        (
            acceptor.name,
            acceptor.host,
            acceptor.port,
            acceptor.tls is None,
            {key: value for key, value in acceptor.params.items() if key not in ACCEPTOR_RELOADED},
        )
        for acceptor in configuration.acceptors
        if acceptor.name in fixed
    ]


def reloadable_acceptors(started: Configuration, configuration: Configuration) -> list[AcceptorConfig]:
    """Returns the acceptors of a changed configuration, those of a replicated group as they were at the start."""
    fixed = {each.name: each for each in started.acceptors if serves_group(started, each)}
    fresh = {each.name: each for each in configuration.acceptors if each.name not in fixed}
    found = [*fixed.values(), *fresh.values()]
    wanted = {each.name: each for each in configuration.acceptors}
    return [_renewed(each, wanted[each.name]) if each.name in fixed and each.name in wanted else each for each in found]


def _renewed(acceptor: AcceptorConfig, fresh: AcceptorConfig) -> AcceptorConfig:
    """Returns an acceptor with the keys and the domain of a fresh one."""
    tls = acceptor.tls if acceptor.tls is None or fresh.tls is None else fresh.tls
    return replace(acceptor, tls=tls, security_domain=fresh.security_domain)


def serves_group(configuration: Configuration, acceptor: AcceptorConfig) -> bool:
    """Returns whether members of the replicated group of this node come in at an acceptor."""
    settings = configuration.cluster_settings()
    return settings is not None and settings.serves_group(acceptor)


def _published(configuration: Configuration) -> list[object]:
    """Returns what acceptors say about discovery and rebalancing by OpenWire, which parts of the node begin with."""
    options = [(each.name, each.options(OpenWireAcceptor)) for each in configuration.acceptors]
    return [
        (name, each.discovery_uri, each.rebalance_cluster_clients)
        for name, each in options
        if each.discovery_uri or each.rebalance_cluster_clients
    ]


def _fixed_connections(started: Configuration, configuration: Configuration) -> list[object]:
    """Returns what cluster connections change with a restart only. In a pair or group that is all but their settings;
    else others than the first one come and go by a reload."""
    found = configuration.cluster_connections
    if started.ha.form != NONE or not started.cluster_connections:
        return [each.fixed() for each in found]
    first = started.cluster_connections[0].name
    common = {each.name for each in started.cluster_connections} & {each.name for each in found}
    return [first in common, *(each.fixed() for each in sorted(found, key=lambda one: one.name) if each.name in common)]


def _fixed_connectors(started: Configuration, configuration: Configuration) -> dict[str, object]:
    """Returns the connectors that the started node's cluster connections and group use: others change by a reload."""
    settings = started.cluster_settings()
    names = [] if settings is None else settings.fixed_connectors()
    return {name: configuration.connectors.get(name) for name in names}


def _added_grouping(before: Configuration, after: Configuration) -> object:
    """Returns the grouping handler, None for one that a reload adds."""
    added = before.grouping is None and bool(before.cluster_connections)
    return None if added else after.grouping


def _has_routers(configuration: Configuration) -> bool:
    return any(acceptor.router is not None for acceptor in configuration.acceptors)
