"""The tables `[networks.NAME]` of atalanta.toml: network connectors with the names of ActiveMQ Classic.

Lists of destinations are strings with commas: `excludedDestinations = "queue://local.>,topic://news"`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import Field, fields, replace
from typing import Any, Final

from atalanta.cluster.networks.config import NetworkConnectorConfig, NetworkDestination
from atalanta.config.native.network_uri import read_uri
from atalanta.config.problems import nearest
from atalanta.kernel.option import OptionGroup
from atalanta.wire.uri import UriError

NETWORKS: Final = "networks"
NAME: Final = "name"
QUEUE: Final = "queue://"
TOPIC: Final = "topic://"
# Key -> attribute of NetworkConnectorConfig.
DESTINATIONS: Final = {
    "excludedDestinations": "excluded",
    "dynamicallyIncludedDestinations": "dynamically_included",
    "staticallyIncludedDestinations": "statically_included",
    "durableDestinations": "durable",
}
Problem = Callable[[str, str, str], None]  # key, text, hint
Assign = Callable[[OptionGroup, Field[Any], str, object], None]


def read_own_networks(value: object, assign: Assign, problem: Problem) -> list[NetworkConnectorConfig]:
    """Reads the tables. `assign` checks a value against its option."""
    found: list[NetworkConnectorConfig] = []
    if not isinstance(value, dict):
        problem(NETWORKS, f"{NETWORKS} is not a table", f"write [{NETWORKS}.NAME]")
        return found
    known = {entry.metadata["xml"]: entry for entry in fields(NetworkConnectorConfig) if entry.metadata}
    for name, table in value.items():
        if not isinstance(table, dict):
            problem(NETWORKS, f"{NETWORKS}.{name} is not a table", f"write [{NETWORKS}.{name}]")
            continue
        config = NetworkConnectorConfig(name=name)
        for key, text in table.items():
            if key in DESTINATIONS:
                setattr(config, DESTINATIONS[key], _destinations(key, text, problem))
            elif key in known and key != NAME:
                assign(config, known[key], key, text)
            else:
                hint = nearest(key, [*known, *DESTINATIONS])
                problem(key, f"unknown key '{key}' in [{NETWORKS}.{name}]", hint)
        try:
            found.append(replace(config, way=read_uri(config.uri)))
        except UriError as error:
            problem("uri" if config.uri else name, f"[{NETWORKS}.{name}]: {error}", "")
    return found


def _destinations(key: str, text: object, problem: Problem) -> list[NetworkDestination]:
    found: list[NetworkDestination] = []
    for part in text.split(",") if isinstance(text, str) else [""]:
        part = part.strip()
        name = part.removeprefix(QUEUE).removeprefix(TOPIC)
        if not name or name == part:
            problem(key, f"{key}: '{part or text}' is not a destination", f"write {QUEUE}NAME or {TOPIC}NAME")
        found.append(NetworkDestination(part.startswith(QUEUE), name))
    return found


def networks_text(networks: Iterable[NetworkConnectorConfig]) -> str:
    """Returns the tables of these connectors; options with their default are left out."""
    lines: list[str] = []
    for config in networks:
        # TOML reads strings as JSON writes them.
        lines.append(f"[{NETWORKS}.{json.dumps(config.name)}]")
        for entry in fields(NetworkConnectorConfig):
            value = getattr(config, entry.name)
            if entry.metadata and entry.name != NAME and value != entry.default:
                lines.append(f"{entry.metadata['xml']} = {json.dumps(value)}")
        for key, attribute in DESTINATIONS.items():
            names = [(QUEUE if each.queue else TOPIC) + each.name for each in getattr(config, attribute)]
            if names:
                lines.append(f"{key} = {json.dumps(','.join(names))}")
        lines.append("")
    return "\n".join(lines)
