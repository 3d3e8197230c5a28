"""A node of any CORE broker for the write-ahead source: messages received in XA branches, and browsers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from atalanta.client import ReceivedMessage, Xid, blocking
from atalanta.spark.errors import GatewayError, NodeUnavailable, QueueMissing
from atalanta.spark.gateway.core_gateway import (
    bracketed,
    connection_to,
    end_branch,
    members_of,
    translated,
)
from atalanta.spark.gateway.gateway import Credentials, GatewayMember

XID_FORMAT: Final = 0x4154_4C57  # of the branches in which messages are received
TOPOLOGY_WAIT_S: Final = 2.0


class WalNode(Protocol):
    """A connection to one node, for one thread at a time. Raises the errors of errors.py."""

    node_id: str
    server: str

    def members(self) -> Sequence[GatewayMember]:
        """Returns the nodes of the cluster that have a connector."""

    def queues(self) -> Sequence[str]:
        """Returns the durable queues of applications. Raises GatewayError if the user may not list them."""
        ...

    def waiting(self, queue: str) -> int:
        """Returns the number of messages in the queue. Raises QueueMissing."""
        ...

    def prepared(self, folder_id: str) -> list[str]:
        """Returns the names of the prepared branches of this folder."""
        ...

    def commit(self, folder_id: str, branch: str) -> bool:
        """Commits a prepared branch. Returns False if the node does not have it."""
        ...

    def roll_back(self, folder_id: str, branch: str) -> None:
        """Rolls a prepared branch back."""

    def begin(self, folder_id: str, branch: str, queue: str, selector: str | None) -> None:
        """Begins a branch that receives from the queue."""

    def receive(self) -> ReceivedMessage | None:
        """Returns the next message of the branch, None if the queue has none now."""

    def leave(self) -> None:
        """Leaves the message that was received last in its queue: the branch ends with the one before."""

    def prepare(self) -> None:
        """Acknowledges every received message in the branch, prepares it, and ends its session.

        The messages that the client has and the branch has not return to the queue before that: if a session fails
        whose branch was committed elsewhere, Artemis keeps them in delivery for ever (ServerSessionImpl.pendingTX).
        """

    def end(self) -> None:
        """Ends the branch. One that is not prepared returns its messages."""

    def browse(self, queue: str, selector: str | None) -> Iterator[ReceivedMessage]: ...

    def close(self) -> None: ...


Opener = Callable[[str, Credentials], WalNode]
"""Server and credentials -> a connection. Raises NodeUnavailable or LoginRefused."""


class CoreNode:
    """See WalNode."""

    def __init__(self, server: str, connection: blocking.Connection) -> None:
        self.server = server
        self.connection = connection
        self.node_id = self._node_id()
        self._branch: blocking.Branch | None = None
        self._consumer: blocking.Consumer | None = None
        self._last: ReceivedMessage | None = None  # of the branch
        self._before: ReceivedMessage | None = None
        self._management: blocking.Management | None = None

    def _node_id(self) -> str:
        """Returns the node's id: one without a host is the answer of a node alone, the others have connectors."""
        place = self.server.split("://")[-1].split("?")[0]
        self._await_topology()
        for member in self.connection.topology:
            if member.host is None or f"{bracketed(member.host)}:{member.port}" == place:
                return member.node_id
        try:
            with translated(self.server):
                return str(self.connection.management().get("broker", "NodeID"))
        except GatewayError as error:
            raise GatewayError(
                f"{self.server}: option servers must name a node as its connector does, or the user needs the "
                f"permission manage to ask for the node's id: {error}"
            ) from error

    def _await_topology(self) -> None:
        """Waits for the members: a busy node may send them a moment after the answer to the login."""
        until_s = time.monotonic() + TOPOLOGY_WAIT_S
        self.connection.refresh()
        while not self.connection.topology and time.monotonic() < until_s:
            time.sleep(0.01)
            self.connection.refresh()

    def members(self) -> Sequence[GatewayMember]:
        with translated(self.server):
            return members_of(self.connection)

    def queues(self) -> Sequence[str]:
        try:
            with translated(self.server):
                if self._management is None:
                    self._management = self.connection.management()
                rows = self._management.rows("listQueues")
        except NodeUnavailable:
            raise
        except GatewayError as error:
            raise GatewayError(
                f"the queues of queuePattern cannot be listed: give the user the permission manage for the "
                f"management address, or name the queues in option queue: {error}"
            ) from error
        return [
            str(row["name"])
            for row in rows
            if row.get("durable") == "true" and row.get("internalQueue") != "true"
        ]

    def waiting(self, queue: str) -> int:
        with translated(self.server):
            found = self.connection.query_queue(queue.rpartition("::")[2])
        if not found.exists:
            raise QueueMissing(f"{self.server}: there is no queue {queue}")
        return found.message_count

    def prepared(self, folder_id: str) -> list[str]:
        with translated(self.server):
            return [
                xid.branch_qualifier.decode()
                for xid in self.connection.xa_resource.recover()
                if xid.format_id == XID_FORMAT and xid.global_transaction_id == folder_id.encode()
            ]

    def commit(self, folder_id: str, branch: str) -> bool:
        with translated(self.server):
            return end_branch(self.connection, xid_of(folder_id, branch), True)

    def roll_back(self, folder_id: str, branch: str) -> None:
        with translated(self.server):
            end_branch(self.connection, xid_of(folder_id, branch), False)

    def begin(self, folder_id: str, branch: str, queue: str, selector: str | None) -> None:
        with translated(self.server):
            opened = self.connection.xa_resource.branch(xid_of(folder_id, branch))
            self._branch = opened
            opened.open()
            self._consumer = opened.consumer(queue, selector)

    def receive(self) -> ReceivedMessage | None:
        with translated(self.server):
            message = None if self._consumer is None else self._consumer.receive(0.0)
        if message is not None:
            self._before, self._last = self._last, message
        return message

    def leave(self) -> None:
        self._last = self._before

    def prepare(self) -> None:
        if self._branch is None or self._consumer is None or self._last is None:
            raise GatewayError(f"{self.server}: a branch without messages is not prepared")
        with translated(self.server):
            self._last.acknowledge()  # of a transaction: every message up to it
            self._consumer.close()
            self._branch.prepare()
        self.end()

    def end(self) -> None:
        branch, self._branch, self._consumer = self._branch, None, None
        self._last = self._before = None
        if branch is not None:
            with translated(self.server):
                branch.close()

    def browse(self, queue: str, selector: str | None) -> Iterator[ReceivedMessage]:
        with (
            translated(self.server),
            self.connection.consumer(queue, selector, browse=True) as browser,
        ):
            yield from browser

    def close(self) -> None:
        self.connection.close()


def open_node(server: str, credentials: Credentials) -> WalNode:
    """Connects to a node. Raises NodeUnavailable, LoginRefused or GatewayError."""
    return CoreNode(server, connection_to(server, credentials))


def xid_of(folder_id: str, branch: str) -> Xid:
    return Xid(XID_FORMAT, branch.encode(), folder_id.encode())
