"""The connections of a driver to every node: the servers of the options, and the members of their topology."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping

from atalanta.spark.errors import DriverGone, NodeTimeout, NodeUnavailable
from atalanta.spark.gateway.node_servers import NodeServers
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.members import RETRY_S
from atalanta.spark.wal.wal_node import Opener, WalNode

log = logging.getLogger("atalanta.spark")


class WalNodes:
    """The connections. `present` waits for every known node."""

    def __init__(self, options: ReadOptions, open_node: Opener) -> None:
        self.options = options
        self.open_node = open_node
        self.nodes: dict[str, WalNode | None] = dict.fromkeys(options.login.servers)  # by server
        self.servers = NodeServers(options.login.groups)
        self.required: dict[str, str | None] = dict.fromkeys(options.login.servers)  # server -> node id, if known
        self.parent_pid = os.getppid()  # Spark's JVM

    def present(self) -> dict[str, WalNode]:
        """Returns the nodes by id, once all answer. Raises NodeTimeout after `nodeTimeout`, and DriverGone."""
        deadline = time.monotonic() + self.options.login.node_timeout_s
        said = False
        while True:
            if os.getppid() != self.parent_pid:
                raise DriverGone(
                    f"Spark (process {self.parent_pid}) has ended, so this query does too"
                )
            found, absent = self._poll()
            if not absent:
                return found
            text = "; ".join(absent)
            if not self.options.wait_unreachable:
                raise NodeTimeout(f"not reachable (and unreachable=fail): {text}")
            if time.monotonic() >= deadline:
                raise NodeTimeout(
                    f"not reachable for {self.options.login.node_timeout_s:g} s (nodeTimeout): {text}. Check host, "
                    "port and TLS in option servers; write the members of a pair as one node: a:61616|b:61616"
                )
            if not said:
                log.warning("waiting for %s", text)
                said = True
            time.sleep(RETRY_S)

    def add(self, node_id: str, server: str) -> None:
        """Adds a node of an earlier run, which `present` waits for."""
        self.required.setdefault(server, node_id)
        self.nodes.setdefault(server, None)

    def drop(self, node: WalNode) -> None:
        """Closes a connection that was lost. The next call of `present` connects again."""
        node.close()
        for server, known in self.nodes.items():
            if known is node:
                self.nodes[server] = None

    @property
    def complete(self) -> bool:
        """Returns False if a connection was lost since the last call of `present`."""
        return None not in self.nodes.values()

    def close(self) -> None:
        for node in {id(node): node for node in self.nodes.values() if node is not None}.values():
            node.close()

    def _poll(self) -> tuple[dict[str, WalNode], list[str]]:
        """Returns the nodes that answer, and texts about the others."""
        found: dict[str, WalNode] = {}
        away: dict[str, str] = {}
        members: set[str] = set()
        # Open ones first: the other member of their pair need not be tried then.
        pending = sorted(self.nodes, key=lambda server: self.nodes[server] is None)
        while pending:
            server = pending.pop(0)
            node = self.nodes.get(server) or self._serving(server, found)
            try:
                node = node or self.open_node(server, self.options.receiving_credentials())
            except NodeUnavailable as error:
                away[server] = str(error)
                for other in self.servers.others(server):
                    if other not in self.nodes:
                        self.nodes[other] = None
                        pending.append(other)
                continue
            first = found.setdefault(node.node_id, node)
            if first is not node:  # another name of the same node
                node.close()
            self.nodes[server] = first
            try:
                shown = first.members()
            except NodeUnavailable as error:
                self.drop(first)
                away[server] = str(error)
                continue
            self.servers.learn(shown)
            for member in shown:
                members.add(member.server)
                if member.server not in self.nodes and member.node_id not in found:
                    self.nodes[member.server] = None
                    pending.append(member.server)
        for server in list(away):
            self.nodes[server] = self._serving(server, found)
            if self.nodes[server] is None and (server in members or server in self.required):
                continue
            del away[server]
            if self.nodes[server] is None:  # it left the topology
                del self.nodes[server]
        absent = [f"server {server}: {why}" for server, why in away.items()]
        removed = self.options.removed_nodes
        return {node_id: node for node_id, node in found.items() if node_id not in removed}, absent

    def _serving(self, server: str, found: Mapping[str, WalNode]) -> WalNode | None:
        """Returns the connection to another member of this server's pair."""
        node_id = self.servers.node_of(server) or self.required.get(server)
        if node_id is not None and node_id in found:
            return found[node_id]
        others = [self.nodes.get(other) for other in self.servers.others(server)]
        return next((node for node in others if node is not None and node in found.values()), None)
