"""The cluster's nodes for a query's driver: the reachable ones, and the position of each queue.

The search begins at `servers`. The topology adds further members, the offsets add former ones. A node is its id: after
a failover it is found at another server (node_servers.py). Only the driver uses this; a task uses one node
(spark/read/partition_reader.py).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from atalanta.client import Position
from atalanta.message import dataclass
from atalanta.spark.errors import (
    DriverGone,
    GatewayError,
    NodeTimeout,
    NodeUnavailable,
    QueueMissing,
    SparkSourceError,
    no_queue,
)
from atalanta.spark.gateway.gateway import Connector, Gateway
from atalanta.spark.gateway.node_servers import NodeServers, is_same
from atalanta.spark.options import ReadOptions

RETRY_S: Final = 0.2  # between two attempts at a node
RETRY_MAX_S: Final = 30.0

T = TypeVar("T")
log = logging.getLogger("atalanta.spark")


@dataclass(frozen=True)
class Located:
    """A position, the host:port that reported it, and those of the node's other members."""

    server: str
    position: Position
    backups: tuple[str, ...] = ()


class ServerLink:
    """A server, and a connection to it while it is reachable."""

    def __init__(self, server: str, node_id: str | None) -> None:
        self.server = server
        self.node_id = node_id
        self.gateway: Gateway | None = None
        self.position: Position | None = None
        self.error = "not tried yet"
        self.next_try_s = 0.0
        self.tried = False

    def drop(self, why: str) -> None:
        """Closes the connection; the next poll connects again."""
        gateway, self.gateway, self.position = self.gateway, None, None
        self.error = why
        if gateway is not None:
            gateway.close()


class PolledMembers:
    """The members. A poll asks every link; its result is reused for `positionCache`. Thread-safe."""

    def __init__(self, options: ReadOptions, connect: Connector) -> None:
        self.options = options
        self.connect = connect
        self.lock = threading.RLock()
        self.servers = NodeServers(options.login.groups)
        self.links: dict[str, ServerLink] = {one: ServerLink(one, None) for one in options.login.servers}
        self.found: dict[str, Located] = {}
        self.polled_at_s = float("-inf")
        # Spark's JVM. It may be process 1 of a container, so only a change of the parent shows its end.
        self.parent_pid = os.getppid()

    # -- positions ------------------------------------------------------------------------------
    def poll(self, max_age_s: float) -> dict[str, Located]:
        """Returns node id -> position, for every node that answers now and has the queue.

        An answer that is younger than `max_age_s` is not asked for again; 0 always asks.
        """
        with self.lock:
            now = time.monotonic()
            if now - self.polled_at_s < max_age_s:
                return self.found
            found: dict[str, Located] = {}
            # Open links come first: the other members of their nodes need not be tried then.
            for link in sorted(self.links.values(), key=lambda link: link.gateway is None):
                self._poll_link(link, found)
            # Members found by this poll are asked at once, so that a first poll is complete.
            for link in self._learn():
                self._poll_link(link, found)
            for link in self._backups():
                self._poll_link(link, found)
            self.found = found
            self.polled_at_s = time.monotonic()
            return found

    def wait_for(
        self, required: Mapping[str, str], all_servers: bool, max_age_s: float
    ) -> dict[str, Located]:
        """Returns positions as soon as every required node (id -> host:port) answers.

        `all_servers` also requires every server of the options. NodeTimeout names the missing nodes, after
        `nodeTimeout` or at once with unreachable=fail. Raises DriverGone if Spark ended meanwhile.
        """
        deadline = time.monotonic() + self.options.login.node_timeout_s
        with self.lock:
            self._hint(required)
        said = False
        while True:
            self._check_driver()
            found = self.poll(max_age_s)
            absent = self._absent(found, required, all_servers)
            if not absent:
                return found
            names = "; ".join(absent)
            if not self.options.wait_unreachable:
                raise NodeTimeout(f"not reachable (and unreachable=fail): {names}")
            if time.monotonic() >= deadline:
                raise NodeTimeout(
                    f"not reachable for {self.options.login.node_timeout_s:g} s (nodeTimeout): "
                    f"{names}. {self._remedy(found, required)}"
                )
            if not said:
                log.warning("waiting for %s", names)
                said = True
            time.sleep(RETRY_S)
            max_age_s = 0.0

    def call(self, node_id: str, action: Callable[[Gateway], T]) -> T:
        """Executes `action` at that node, and again after a reconnect if the connection was lost.

        `action` must be repeatable. Raises NodeTimeout and DriverGone like wait_for.
        """
        deadline = time.monotonic() + self.options.login.node_timeout_s
        while True:
            self._check_driver()
            link = self._link_of(node_id)
            if link is None or link.gateway is None:
                self.wait_for({node_id: "" if link is None else link.server}, False, 0.0)
                continue
            try:
                return action(link.gateway)
            except NodeUnavailable as error:
                with self.lock:
                    link.drop(str(error))
                    self.polled_at_s = float("-inf")
                if time.monotonic() >= deadline or not self.options.wait_unreachable:
                    raise NodeTimeout(f"node {node_id} ({link.server}): {error}") from error
                time.sleep(RETRY_S)

    def knows(self, name: str) -> bool:
        """Returns True if `name` is the id or a host:port of a node that was found."""
        with self.lock:
            links = list(self.links.values())
        return any(
            link.node_id == name or is_same(each, name)
            for link in links
            if link.node_id is not None
            for each in (link.server, *self.servers.others(link.server))
        )

    def gateway(self, node_id: str) -> Gateway | None:
        """Returns the open connection to that node, if there is one."""
        link = self._link_of(node_id)
        return None if link is None else link.gateway

    def no_queue(self) -> SparkSourceError:
        """Returns the error for a queue that is at none of the nodes, with the names most like it."""
        queue = self.options.queue
        near: list[str] = []
        for link in list(self.links.values()):
            try:
                names = [] if link.gateway is None else link.gateway.queues("#")
            except GatewayError as error:
                log.info("the queues of %s are not known: %s", link.server, error)
                continue
            import difflib  # only for an error

            near += difflib.get_close_matches(queue.rpartition("::")[2], names, n=3)
        return no_queue(self.options.login.servers, queue, near)

    def close(self) -> None:
        with self.lock:
            for link in self.links.values():
                link.drop("closed")
            self.found = {}

    def _check_driver(self) -> None:
        """Raises DriverGone after Spark's end: an orphan must release nodes and leases for its successor."""
        if os.getppid() != self.parent_pid:
            raise DriverGone(f"Spark (process {self.parent_pid}) has ended, so this query does too")

    # -- links ----------------------------------------------------------------------------------
    def _poll_link(self, link: ServerLink, found: dict[str, Located]) -> None:
        """Adds the node to `found` if it answers. LogViewUnsupported and LoginRefused are raised."""
        # Each server is tried once: a member that answers beside another one of its node is a node of its own.
        if link.gateway is None and link.tried and self._is_served(link):
            return
        if link.node_id is not None and link.node_id in found:
            return
        if link.gateway is None and not self._open(link):
            return
        gateway = link.gateway
        if gateway is None:
            return
        try:
            position = gateway.position(self.options.queue)
        except QueueMissing as error:
            link.position, link.error = None, str(error)
            return
        except NodeUnavailable as error:
            link.drop(str(error))
            return
        link.node_id = position.node_id
        link.position = position
        backups = tuple(self.servers.others(link.server))
        found.setdefault(position.node_id, Located(link.server, position, backups))

    def _open(self, link: ServerLink) -> bool:
        began = time.monotonic()
        if began < link.next_try_s:
            return False
        link.tried = True
        try:
            link.gateway = self.connect(link.server, self.options.login.quick_credentials())
        except NodeUnavailable as error:
            link.error = str(error)
            ended = time.monotonic()
            # A server that only times out must not delay the others at every poll.
            link.next_try_s = ended + min(RETRY_MAX_S, max(RETRY_S, 5 * (ended - began)))
            return False
        link.next_try_s = 0.0
        return True

    def _learn(self) -> list[ServerLink]:
        """Adds links for members that only the topology knows, or that have a new server now."""
        known = {link.node_id for link in self.links.values() if link.gateway is not None}
        new: list[ServerLink] = []
        for link in list(self.links.values()):
            if link.gateway is None:
                continue
            try:
                topology = link.gateway.topology()
            except NodeUnavailable as error:
                link.drop(str(error))
                continue
            self.servers.learn(topology)
            if link.node_id is None and len(topology) == 1:  # without the queue it does not say who it is
                link.node_id = topology[0].node_id
                known.add(link.node_id)
            for member in topology:
                if member.node_id not in known and member.server not in self.links:
                    added = ServerLink(member.server, member.node_id)
                    self.links[member.server] = added
                    known.add(member.node_id)
                    new.append(added)
        for link in self.links.values():
            if link.gateway is None or link.node_id is None:
                link.node_id = self.servers.node_of(link.server) or link.node_id
        return new

    def _backups(self) -> list[ServerLink]:
        """Adds links to the other members of nodes that do not answer."""
        new: list[ServerLink] = []
        for link in list(self.links.values()):
            if link.gateway is not None or self._is_served(link):
                continue
            for server in self.servers.others(link.server):
                if server not in self.links:
                    self.links[server] = ServerLink(server, link.node_id)
                    new.append(self.links[server])
        return new

    def _is_served(self, link: ServerLink) -> bool:
        """Returns True if another member of this server's node is connected."""
        others = self.servers.others(link.server)
        return any(
            each is not link
            and each.gateway is not None
            and (each.server in others or (link.node_id is not None and each.node_id == link.node_id))
            for each in self.links.values()
        )

    def _hint(self, required: Mapping[str, str]) -> None:
        """Adds servers from the offsets that neither the options nor the topology name now."""
        known = {link.node_id for link in self.links.values()}
        for node_id, server in required.items():
            if node_id not in known and server and server not in self.links:
                self.links[server] = ServerLink(server, node_id)

    def _link_of(self, node_id: str) -> ServerLink | None:
        with self.lock:
            links = [link for link in self.links.values() if link.node_id == node_id]
            connected = [link for link in links if link.gateway is not None]
            return next(iter(connected or links), None)

    def _why_absent(self, link: ServerLink | None, server: str) -> str:
        if link is not None:
            return link.error
        there = self.links.get(server)
        if there is not None and there.gateway is not None:
            return there.error if there.node_id is None else f"at that server there is node {there.node_id} now"
        return "no longer in the topology"

    def _absent(
        self, found: Mapping[str, Located], required: Mapping[str, str], all_servers: bool
    ) -> list[str]:
        """Returns a text about the missing nodes."""
        absent = []
        for node_id, server in required.items():
            if node_id not in found:
                link = self._link_of(node_id)
                where = server if link is None else link.server
                absent.append(f"node {node_id} ({where}): {self._why_absent(link, where)}")
        if all_servers:
            for server in self.options.login.servers:
                link = self.links[server]
                if link.gateway is None and link.node_id not in found and not self._is_served(link):
                    absent.append(f"server {server}: {link.error}")
        return absent

    def _remedy(self, found: Mapping[str, Located], required: Iterable[str]) -> str:
        """Returns what to do about missing nodes: an unknown server may be a typo or a member of a known node."""
        if any(node_id not in found for node_id in required):
            return (
                "The query waits for every node of its offsets, so that no row is too late for a watermark. If a node "
                "is gone for good, name its id in removedNodes"
            )
        text = (
            "The query waits for every server at its first start, so that no row is too late for a watermark. Check "
            "host, port and TLS in option servers"
        )
        if not found:
            return f"{text}. If another member of a pair or group serves, name that too: a:61616|b:61616"
        return f"{text}. If it is of the pair or group of another server, write them as one node: a:61616|b:61616"
