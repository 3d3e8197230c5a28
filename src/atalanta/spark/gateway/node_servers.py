"""The servers of each node: the members of a pair or a group are one node, of which one member serves at a time.

A server belongs to the node of another one if the option `servers` says so (`a:61616|b:61616`), if a topology has shown
both at one node, or if an earlier offset or decision names both.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Final

from atalanta.spark.gateway.gateway import GatewayMember

ALTERNATIVES: Final = "|"  # between the servers of one node in the option `servers`
RESOLVED_S: Final = 30.0

_resolved: dict[str, tuple[float, frozenset[str]]] = {}  # host -> until when (s), its addresses


class NodeServers:
    """The servers by node. `groups` are those of the options. Thread-safe."""

    def __init__(self, groups: Iterable[Sequence[str]]) -> None:
        self.lock = threading.Lock()
        self.groups: list[tuple[str, ...]] = [tuple(group) for group in groups]
        self.node_by_server: dict[str, str] = {}  # as the topologies have said, the newest last

    def learn(self, members: Iterable[GatewayMember]) -> None:
        """Adds what a topology shows. What an earlier one has shown stays: a member that ended may return."""
        with self.lock:
            for member in members:
                for server in (member.server, member.backup):
                    if server is not None:
                        self.node_by_server.pop(server, None)
                        self.node_by_server[server] = member.node_id

    def remember(self, servers: Sequence[str]) -> None:
        """Adds servers of one node that an offset or a decision names."""
        with self.lock:
            if len(servers) > 1 and tuple(servers) not in self.groups:
                self.groups.append(tuple(servers))

    def node_of(self, server: str) -> str | None:
        """Returns the id of a server's node; None if no topology has shown it."""
        with self.lock:
            return self._node_of(server)

    def others(self, server: str) -> list[str]:
        """Returns the other servers of the same node, the newest first."""
        with self.lock:
            node_id = self._node_of(server)
            found = [each for each, node in self.node_by_server.items() if node_id is not None and node == node_id]
            found.reverse()
            for group in self.groups:
                if any(is_same(each, server) for each in group):
                    found += [each for each in group if self._node_of(each) in {None, node_id} or node_id is None]
        return [each for each in dict.fromkeys(found) if each != server]

    def places(self, servers: Iterable[str]) -> list[tuple[str, ...]]:
        """Returns these servers by node, each node once, in the given order."""
        result: list[tuple[str, ...]] = []
        seen: set[str] = set()
        given = list(servers)
        for server in given:
            if server not in seen:
                others = self.others(server)
                place = [each for each in given if each == server or each in others]
                seen.update(place)
                result.append(tuple(place))
        return result

    def _node_of(self, server: str) -> str | None:
        known = self.node_by_server.get(place_of(server))
        if known is not None or not self.node_by_server:
            return known
        return next((node for each, node in self.node_by_server.items() if is_same(each, server)), None)


def place_of(server: str) -> str:
    """Returns host:port of a server, which may be a URL."""
    return server.split("://")[-1].split("?")[0].lower()


def is_same(one: str, other: str) -> bool:
    """Returns True for two names of one host and port: a connector may have an address where `servers` has a name."""
    one, other = place_of(one), place_of(other)
    if one == other:
        return True
    return one.rpartition(":")[2] == other.rpartition(":")[2] and not addresses_of(one).isdisjoint(addresses_of(other))


def addresses_of(place: str) -> frozenset[str]:
    """Returns the IP addresses of host:port, none for a name that does not resolve; an answer is used for 30 s."""
    host = place.rpartition(":")[0].strip("[]")
    now_s = time.monotonic()
    until_s, addresses = _resolved.get(host, (0.0, frozenset()))
    if now_s >= until_s:
        try:
            addresses = frozenset(str(found[4][0]) for found in socket.getaddrinfo(host, None))
        except OSError:
            addresses = frozenset()
        _resolved[host] = (now_s + RESOLVED_S, addresses)
    return addresses
