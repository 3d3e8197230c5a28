"""The tables `[zones.NAME]` of atalanta.toml: the clients that prefer a zone, and its real Artemis members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from ipaddress import ip_network

from atalanta.cluster.native_config import OwnZone, names_of
from atalanta.config.problems import nearest

Problem = Callable[[str, str, str], None]  # key, text, hint


def read_own_zones(value: object, problem: Problem) -> dict[str, OwnZone]:
    """Reads the tables, by name of the zone."""
    found: dict[str, OwnZone] = {}
    if not isinstance(value, dict):
        problem("zones", "zones is not a table", "write [zones.NAME]")
        return found
    known = {entry.metadata["xml"]: entry for entry in fields(OwnZone)}
    for name, table in value.items():
        if not isinstance(table, dict):
            problem("zones", f"zones.{name} is not a table", f"write [zones.{name}]")
            continue
        if not name or "," in name:
            problem("zones", f"[zones.{name!r}]: a zone's name is not empty and has no comma", "")
        zone = OwnZone()
        for key, text in table.items():
            entry = known.get(key)
            if entry is None:
                problem(key, f"unknown key '{key}' in [zones.{name}]", nearest(key, known))
            elif not isinstance(text, str):
                problem(key, f"{key}: {text!r} is not a string", f'write {key} = "first, second"')
            else:
                setattr(zone, entry.name, text)
        _check(zone, problem)
        found[name] = zone
    return found


def _check(zone: OwnZone, problem: Problem) -> None:
    for text in names_of(zone.networks):
        try:
            ip_network(text, strict=False)
        except ValueError as error:
            problem("networks", f"networks: {error}", "write an address or a network such as 10.1.0.0/16")
    for text in names_of(zone.members):
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal():
            problem("members", f"members: '{text}' is not host:port", "")
