"""The parts of a changed configuration that take effect only after a restart."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

from atalanta.config.configuration import Configuration
from atalanta.wire.endpoint import TLS_FIELDS

# Fields of BrokerConfig that a reload applies (Broker.reload, ConfiguredResources.reload).
RELOADED: Final = {"addresses", "address_settings", "security_rules", "stored", "diverts"}
# Parameters of acceptors that a reload applies: keys and certificates (app/configuration_files.py), domains
# (wire/endpoint.py).
ACCEPTOR_RELOADED: Final = {*TLS_FIELDS, "securityDomain"}


def needs_restart(before: Configuration, after: Configuration) -> list[str]:
    """Returns the names of elements and sections that differ and are not reloaded, sorted."""
    names = _differing(before.broker, after.broker) + _differing(before.journal, after.journal)
    for name, one, two in (
        ("atalanta.toml", replace(before.own, bridges={}), replace(after.own, bridges={})),
        ("acceptors", _acceptors(before), _acceptors(after)),
        ("connectors", _fixed_connectors(before, before), _fixed_connectors(before, after)),
        ("grouping-handler", before.grouping, after.grouping),
        # The first connection router needs an acceptor that names it.
        ("connection-routers", _has_routers(before), _has_routers(after)),
        ("cluster-connections", before.cluster_connections, after.cluster_connections),
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


def _acceptors(configuration: Configuration) -> list[tuple[object, ...]]:
    """Returns the acceptors without key stores, trust stores and security domain, which are reloaded."""
    return [
        (
            acceptor.name,
            acceptor.host,
            acceptor.port,
            acceptor.tls is None,
            {key: value for key, value in acceptor.params.items() if key not in ACCEPTOR_RELOADED},
        )
        for acceptor in configuration.acceptors
    ]


def _fixed_connectors(started: Configuration, configuration: Configuration) -> dict[str, object]:
    """Returns the connectors that the started node's cluster connections and group use: others change by a reload."""
    settings = started.cluster_settings()
    names = [] if settings is None else settings.fixed_connectors()
    return {name: configuration.connectors.get(name) for name in names}


def _has_routers(configuration: Configuration) -> bool:
    return any(acceptor.router is not None for acceptor in configuration.acceptors)
