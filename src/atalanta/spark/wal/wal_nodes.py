"""The connections of a driver to every node: the servers of the options, and the members of their topology."""

from __future__ import annotations

import logging
import os
import time

from atalanta.spark.errors import DriverGone, NodeTimeout, NodeUnavailable
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
        self.required = set(options.login.servers)
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
                    f"not reachable for {self.options.login.node_timeout_s:g} s (nodeTimeout): {text}"
                )
            if not said:
                log.warning("waiting for %s", text)
                said = True
            time.sleep(RETRY_S)

    def add(self, server: str) -> None:
        """Adds a server of an earlier run, which `present` waits for."""
        self.required.add(server)
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
        absent: list[str] = []
        members: set[str] = set()
        pending = list(self.nodes)
        while pending:
            server = pending.pop(0)
            node = self.nodes.get(server)
            try:
                node = node or self.open_node(server, self.options.receiving_credentials())
            except NodeUnavailable as error:
                absent.append(f"server {server}: {error}")
                continue
            first = found.setdefault(node.node_id, node)
            if first is not node:  # another name of the same node
                node.close()
            self.nodes[server] = first
            try:
                shown = first.members()
            except NodeUnavailable as error:
                self.drop(first)
                absent.append(f"server {server}: {error}")
                continue
            for member in shown:
                members.add(member.server)
                if member.server not in self.nodes and member.node_id not in found:
                    self.nodes[member.server] = None
                    pending.append(member.server)
        self._forget(members, absent)
        removed = self.options.removed_nodes
        return {node_id: node for node_id, node in found.items() if node_id not in removed}, absent

    def _forget(self, members: set[str], absent: list[str]) -> None:
        """Forgets servers that left the topology, unless they are required."""
        for server, node in list(self.nodes.items()):
            if node is None and server not in members | self.required:
                del self.nodes[server]
                absent[:] = [text for text in absent if not text.startswith(f"server {server}: ")]
