"""What of a changed configuration counts after a restart only."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

from atalanta.config.configuration import Configuration
from atalanta.wire.core.config import TLS_FIELDS

# Parts of BrokerConfig that a reload takes over (kernel/broker/reload.py).
RELOADED: Final = {"addresses", "address_settings", "security_rules", "diverts"}
# Parameters of acceptors: keys and certificates (app.py: read_again), wire/core/domains.py.
DOOR_RELOADED: Final = {*TLS_FIELDS, "securityDomain"}


def needs_restart(before: Configuration, after: Configuration) -> list[str]:
    """Names of elements and sections that differ and are not taken over, sorted."""
    names = _differing(before.broker, after.broker) + _differing(before.journal, after.journal)
    for name, one, two in (
        ("atalanta.toml", replace(before.own, bridges={}), replace(after.own, bridges={})),
        ("acceptors", _doors(before), _doors(after)),
        ("connectors", before.connectors, after.connectors),
        ("broadcast-groups", before.broadcast_groups, after.broadcast_groups),
        ("discovery-groups", before.discovery_groups, after.discovery_groups),
        ("grouping-handler", before.grouping, after.grouping),
        # The first one needs an acceptor that names it.
        ("connection-routers", _routed(before), _routed(after)),
        ("cluster-connections", before.cluster_connections, after.cluster_connections),
        ("network-check", before.network_check, after.network_check),
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


def _doors(configuration: Configuration) -> list[tuple[object, ...]]:
    """Acceptors without their key and trust stores, which are read anew, and without whose users come in there."""
    return [
        (
            acceptor.name,
            acceptor.host,
            acceptor.port,
            acceptor.tls is None,
            {key: value for key, value in acceptor.params.items() if key not in DOOR_RELOADED},
        )
        for acceptor in configuration.acceptors
    ]


def _routed(configuration: Configuration) -> bool:
    return any(acceptor.router is not None for acceptor in configuration.acceptors)
