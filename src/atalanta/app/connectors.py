"""The connectors that a process announces to the others of its pair or group."""

from __future__ import annotations

from collections.abc import Mapping

from atalanta.config.configuration import Configuration
from atalanta.wire.core.transport import TransportConfiguration


def announced_connectors(configuration: Configuration) -> dict[str, dict[str, object]]:
    """Returns the parameters of each cluster connection's connector, by the name of the cluster connection."""
    settings = configuration.cluster_settings()
    if settings is None:
        return {}
    return {
        each.name: dict(settings.connectors[each.connector].transport_params())
        for each in settings.cluster_connections
    }


def transport(name: str, values: Mapping[str, object]) -> TransportConfiguration:
    """Returns the connector that a member's file describes."""
    made = TransportConfiguration(name)
    for key, value in values.items():
        if isinstance(value, (bool, int, str)):
            made.put(key, value)
    return made
