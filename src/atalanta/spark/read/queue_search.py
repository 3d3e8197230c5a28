"""The search for the queues of a pattern at all nodes, and connections that several readers of one query share."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from atalanta.spark.errors import NodeTimeout, NodeUnavailable
from atalanta.spark.gateway.gateway import Connector, Credentials, Gateway
from atalanta.spark.gateway.node_servers import NodeServers
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.members import RETRY_MAX_S, RETRY_S

SEARCH_EVERY_S: Final = 1.0


class SharedConnections:
    """One connection per server for all readers of a query.

    A reader that connects a second time has found the connection broken: then there is a new one, for the others too.
    """

    def __init__(self, connect: Connector) -> None:
        self.connect = connect
        self.lock = threading.Lock()
        self.open: dict[str, tuple[Gateway, set[str]]] = {}  # server -> the connection, its readers
        self.refused: dict[str, tuple[float, NodeUnavailable]] = {}  # server -> until when (s), why

    def connector(self, reader: str) -> Connector:
        """Returns the function with which the reader of that name connects."""
        return partial(self._connect, reader)

    def _connect(self, reader: str, server: str, credentials: Credentials) -> Gateway:
        with self.lock:
            found = self.open.get(server)
            if found is not None and reader not in found[1]:
                found[1].add(reader)
                return found[0]
            began = time.monotonic()
            until, why = self.refused.get(server, (0.0, None))
            if why is not None and began < until:
                raise NodeUnavailable(str(why), why.code)
            try:
                gateway = self.connect(server, credentials)
            except NodeUnavailable as error:
                # A server that only times out must not delay every reader.
                spent = time.monotonic() - began
                self.refused[server] = (time.monotonic() + min(RETRY_MAX_S, 5 * spent), error)
                raise
            self.open[server] = (gateway, {reader})
            return gateway


class QueueSearch:
    """The search. Nodes that do not answer are in `absent` (host:port -> why); their queues are found later.

    `node_ids`: the topology's nodes at the last search. A node that was killed is not among them.
    """

    def __init__(self, options: ReadOptions, connect: Connector) -> None:
        self.options = options
        self.connect = connect
        self.links: dict[str, Gateway] = {}
        self.servers = NodeServers(options.login.groups)
        self.absent: dict[str, str] = {}
        self.names: list[str] = []
        self.node_ids: set[str] = set()
        self.next_s = float("-inf")

    def complete(self, pattern: str) -> list[str]:
        """Returns the names as soon as every server of the options has answered. Raises NodeTimeout."""
        login = self.options.login
        deadline = time.monotonic() + login.node_timeout_s
        while True:
            names = self.now(pattern, True)
            missing = [f"server {one}: {self.absent[one]}" for one in login.servers if self._is_missing(one)]
            if not missing:
                return names
            if time.monotonic() >= deadline or not self.options.wait_unreachable:
                raise NodeTimeout(
                    f"not reachable for {login.node_timeout_s:g} s (nodeTimeout), so that the queues of "
                    f"{pattern!r} are not known: {'; '.join(missing)}. Check host, port and TLS in option servers; "
                    "write the members of a pair or group as one node: a:61616|b:61616"
                )
            time.sleep(RETRY_S)

    def now(self, pattern: str, again: bool = False) -> list[str]:
        """Returns the sorted names at the nodes that answer; an answer is used for a second unless `again`."""
        began = time.monotonic()
        if began < self.next_s and not again:
            return self.names
        self.absent = {}
        self.node_ids = set()
        names: set[str] = set()
        asked: set[str] = set()
        servers = list(self.options.login.servers)
        for server in servers:
            if server in asked:
                continue
            asked.add(server)
            found, others = self._ask(server, pattern)
            names.update(found)
            servers.extend(others)  # the loop goes on with them
        self.names = sorted(names)
        ended = time.monotonic()
        self.next_s = ended + max(SEARCH_EVERY_S, 5 * (ended - began))
        return self.names

    def close(self) -> None:
        for gateway in self.links.values():
            gateway.close()
        self.links = {}

    def saw(self, node_ids: Iterable[str]) -> bool:
        """Returns whether the last search has asked all these nodes (without the removed ones)."""
        return not any(self._is_missing(each) for each in self.absent) and self.node_ids.issuperset(
            set(node_ids) - self.options.removed_nodes
        )

    def _is_missing(self, server: str) -> bool:
        """Returns True if neither this server nor another member of its node has answered the last search."""
        return server in self.absent and not any(each in self.links for each in self.servers.others(server))

    def _ask(self, server: str, pattern: str) -> tuple[Sequence[str], list[str]]:
        """Returns the queues of one node, and the servers of its topology without the removed nodes."""
        try:
            if server not in self.links:
                self.links[server] = self.connect(server, self.options.login.quick_credentials())
            gateway = self.links[server]
            found = gateway.queues(pattern)
            members = gateway.topology()
            self.servers.learn(members)
        except NodeUnavailable as error:
            self.absent[server] = str(error)
            broken = self.links.pop(server, None)
            if broken is not None:
                broken.close()
            return [], self.servers.others(server)
        removed = self.options.removed_nodes
        self.node_ids.update(one.node_id for one in members)
        return found, [one.server for one in members if one.node_id not in removed]
