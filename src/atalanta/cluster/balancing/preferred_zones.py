"""The zones that the clients of a node prefer.

A client of Atalanta names its zones itself, the most wanted first. For any other client the first table `[zones.NAME]`
of atalanta.toml decides that matches its client id, user or address.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final

from atalanta.cluster.native_config import OwnSettings, OwnZone, names_of

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

    from atalanta.kernel.sessions.client import Client
    from atalanta.wire.connection import ClientConnection

PREFERRED_MAX: Final = 8  # zones that a client may name
NO_ZONES: Final[tuple[str, ...]] = ()


class ZoneTable:
    """One table `[zones.NAME]`: the clients that belong to the zone, and `zones`, which they prefer in this order."""

    def __init__(self, name: str, own: OwnZone) -> None:
        self.zones: tuple[str, ...] = (name, *names_of(own.fallback))
        self.members = names_of(own.members)
        self.users = names_of(own.users)
        self.client_ids = [pattern_of(text) for text in names_of(own.client_ids)]
        self.networks = [network_of(text) for text in names_of(own.networks)]

    def matches(self, client_id: str | None, user: str, remote: str) -> bool:
        """Returns whether a client belongs here. `remote` is its host:port."""
        if user in self.users:
            return True
        if client_id is not None and any(each.fullmatch(client_id) for each in self.client_ids):
            return True
        return bool(self.networks) and within(remote, self.networks)


class PreferredZones:
    """The zones that each client of a node prefers."""

    def __init__(self, own: OwnSettings) -> None:
        self.tables = [ZoneTable(name, table) for name, table in own.zones.items()]
        self.by_address = {place: table.zones[0] for table in self.tables for place in table.members}
        # By connection: the client id, which a client may name late, and the result.
        self.known: dict[int, tuple[str | None, tuple[str, ...]]] = {}

    def of(self, connection: ClientConnection) -> tuple[str, ...]:
        """Returns the zones of a client with a session, the most wanted first; none if it has no preference."""
        client = connection.client
        known = self.known.get(connection.conn)
        if known is not None and known[0] == client.client_id:
            return known[1]
        user = next((session.identity.user for session in client.sessions.values()), "")
        found = self.at_login(client, client.client_id, user)
        self.known[connection.conn] = (client.client_id, found)
        return found

    def at_login(self, client: Client, client_id: str | None, user: str) -> tuple[str, ...]:
        """Returns the zones of a client that logs in."""
        named = names_of(client.zones)
        if named:
            return named[:PREFERRED_MAX]
        for table in self.tables:
            if table.matches(client_id, user, client.remote):
                return table.zones
        return NO_ZONES

    def by_client_id(self) -> bool:
        """Returns whether a client id may decide the zone of a client."""
        return any(table.client_ids for table in self.tables)

    def prune(self, connections: Container[int]) -> None:
        """Forgets connections that have ended."""
        for conn in [conn for conn in self.known if conn not in connections]:
            del self.known[conn]


def pattern_of(text: str) -> re.Pattern[str]:
    """Returns the pattern of a name in which `*` stands for any text."""
    return re.compile(".*".join(re.escape(part) for part in re.split(r"\*+", text)), re.DOTALL)


def network_of(text: str) -> IPv4Network | IPv6Network:
    """Returns the network of an address with or without a length. ValueError: it is neither."""
    from ipaddress import ip_network  # Imported here: nodes start without it.

    return ip_network(text, strict=False)


def within(remote: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Returns whether the host of "host:port" is in one of the networks."""
    from ipaddress import IPv6Address, ip_address

    try:
        address = ip_address(remote.rpartition(":")[0].strip("[]").partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return any(address.ipv4_mapped in network for network in networks)
    return any(address in network for network in networks)
