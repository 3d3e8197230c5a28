"""Calls to nodes that wait while a node is away, and find it at its backup."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from atalanta.spark.errors import GatewayError, NodeTimeout, NodeUnavailable
from atalanta.spark.gateway.gateway import Connector, Gateway
from atalanta.spark.gateway.node_servers import NodeServers
from atalanta.spark.options import LoginOptions
from atalanta.spark.write.servers import pairs_of, server_for

RETRY_S: Final = 0.2
SEARCH_EACH_S: Final = 2.0  # for the node of a server that does not answer
Result = TypeVar("Result")

log = logging.getLogger("atalanta.spark")


class NodeCalls:
    """Connections to nodes, made when they are needed; the context manager closes them.

    A server stands for its node: if another member of the pair or group serves, the calls go there.
    """

    def __init__(self, login: LoginOptions, connect: Connector) -> None:
        self.login = login
        self.connect = connect
        self.servers = NodeServers(login.groups)
        self.gateways: dict[str, Gateway] = {}

    def call(self, server: str, function: Callable[[Gateway], Result]) -> Result:
        """Calls `function` with the node's gateway, and again while the node is away; NodeTimeout after `nodeTimeout`.

        So a call must be repeatable.
        """
        login = self.login
        deadline = time.monotonic() + login.node_timeout_s
        next_search_s = 0.0
        while True:
            try:
                return function(self.gateway(server))
            except NodeUnavailable as error:
                self._drop(server)
                now = time.monotonic()
                if now >= deadline:
                    raise NodeTimeout(
                        f"server {server} did not answer for {login.node_timeout_s:g} s (nodeTimeout): {error}"
                        f"{self._remedy(server)}"
                    ) from error
                log.warning("server %s: %s; trying again", server, error)
                if now >= next_search_s:
                    self._search(server)
                    next_search_s = time.monotonic() + SEARCH_EACH_S
                time.sleep(RETRY_S)

    def gateway(self, server: str) -> Gateway:
        """Returns the connection to a server's node. Raises NodeUnavailable at once if it is away."""
        members = (server, *self.servers.others(server))
        for member in members:
            if member in self.gateways:
                return self.gateways[member]
        first: NodeUnavailable | None = None
        for member in members:
            try:
                return self._open(member)
            except NodeUnavailable as error:
                first = first or error
        raise first or NodeUnavailable(f"{server} is not known")

    def server_of(self, query: str, partition: int) -> str:
        """Returns the server of a partition. Partitions are spread over nodes: the members of a pair count once."""
        servers = self.login.servers
        if len(self.login.groups) > 1:
            chosen = server_for(servers, query, partition)
            try:
                self.gateway(chosen)  # its topology shows the pairs
            except NodeUnavailable:
                self._search(chosen)
                self.remember_pairs(query)
        return server_for([place[0] for place in self.servers.places(servers)], query, partition)

    def remember_pairs(self, query: str) -> None:
        """Adds the pairs that the decisions of the query name: no topology shows a member that has ended."""
        for server in self.login.servers:
            try:
                decisions = self.gateway(server).decisions(query)
            except NodeUnavailable:
                continue
            self.remember(decisions.values())

    def remember(self, decisions: Iterable[str]) -> None:
        """Adds the pairs that decisions name."""
        for text in decisions:
            for pair in pairs_of(text):
                self.servers.remember(pair)

    def pairs(self) -> tuple[tuple[str, ...], ...]:
        """Returns the servers of each node of the options, with the backups that the topologies show."""
        for server in self.login.servers:
            if self.servers.node_of(server) is not None:
                continue
            try:
                self.gateway(server)
            except GatewayError as error:
                log.info("the topology is not known: %s", error)
        places = self.servers.places(self.login.servers)
        return tuple(tuple(dict.fromkeys((*place, *self.servers.others(place[0])))) for place in places)

    def _open(self, server: str) -> Gateway:
        gateway = self.connect(server, self.login.quick_credentials())
        self.gateways[server] = gateway
        try:
            self.servers.learn(gateway.topology())
        except NodeUnavailable:
            self.gateways.pop(server).close()
            raise
        return gateway

    def _search(self, server: str) -> None:
        """Asks the other nodes for the topology: it may show a backup of the server's node."""
        for other in self.login.servers:
            if other == server:
                continue
            try:
                self.servers.learn(self.gateway(other).topology())
            except NodeUnavailable:
                self._drop(other)

    def _remedy(self, server: str) -> str:
        if self.servers.others(server):
            return ""
        if len(self.login.servers) == 1:
            return ". If another member of its pair or group serves, name that too in option servers: a:61616|b:61616"
        return (
            ". If it is a member of the pair or group of another server, write them as one node in option servers: "
            "a:61616|b:61616"
        )

    def _drop(self, server: str) -> None:
        """Closes the connections to the server's node."""
        for member in (server, *self.servers.others(server)):
            gateway = self.gateways.pop(member, None)
            if gateway is not None:
                gateway.close()

    def __enter__(self) -> NodeCalls:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for server in list(self.gateways):
            self._drop(server)
