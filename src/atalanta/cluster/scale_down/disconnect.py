"""Disconnects the clients and members of a node that scales down.

From the freeze on, the node reads nothing more from clients. Clients and members get the DISCONNECT with the target
only when the target knows all duplicate ids of this node. A message that they then repeat at the target is recognized
as a duplicate.

Members are read until shortly before their DISCONNECT: the target gets the ids of what they sent after the freeze in
between. A member that is a real Artemis loses messages that have no answer by then (it has removed the bindings when
QueueImpl.moveBetweenSnFQueues looks for them). So this node has withdrawn its consumers before, and what was on its way
has been answered.

If the target does not know these ids HOLD_NS after the freeze, for example because it was lost, clients are
disconnected nevertheless: they would wait in vain. Members are not: they send on, and are disconnected when the target
knows the ids. If it never does, they keep the messages that this node may have got until they see it again. A
connection that has not yet said whether it is a member only gets refusals until then.
The same holds after a crash that interrupted the scale-down.

A client that is just connecting (wire/core/server/connection.py, `stop`) may ignore a DISCONNECT, and the end of its
connection, until its requests are answered. The client gets refusals and the DISCONNECT, and then closes the
connection itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.connection.bridge import ClusterBridge
from atalanta.cluster.core_bridges.link import CoreBridgeLink
from atalanta.cluster.scale_down.link import ScaleDownLink
from atalanta.wire.connection import ClientConnection, TransportConnection

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.wire.server import WireServer

# Time after the freeze for which clients are held back while the target does not know the duplicate ids.
HOLD_NS: Final = 10_000_000_000


class Disconnects:
    """Sends the DISCONNECTs of a scale-down.

    `waiting` maps the connections that must end before anything is moved to whether they need a DISCONNECT. `held`
    maps them to the time since when they are held.
    """

    def __init__(
        self, store: MessageStore, host: WireServer, connections: dict[int, TransportConnection], now: int
    ) -> None:
        self.store = store
        self.host = host
        self.connections = connections
        self.waiting: dict[int, bool] = {}
        self.held: dict[int, int] = {}
        self.members_held: bool = False
        self.until = now + HOLD_NS

    def hold(self, now: int, askers: dict[int, bool]) -> None:
        """Stops reading from all connections, except from members, and from `askers`: they requested the scale-down and
        follow its progress."""
        for conn, connection in list(self.connections.items()):
            if isinstance(connection, ClientConnection):
                if conn not in askers and not connection.cluster_peer:
                    self.add(now, conn, connection)
            elif isinstance(connection, CoreBridgeLink):
                self.waiting[conn] = False  # ends when its messages are answered
            elif not isinstance(connection, ClusterBridge | ScaleDownLink):
                connection.stop(now)

    def hold_members(self, now: int) -> None:
        """Stops reading from members, too."""
        self.members_held = True
        for conn, connection in list(self.connections.items()):
            if not isinstance(connection, ClientConnection) or conn in self.waiting:
                continue
            if connection.cluster_peer and not connection.reconnecting:  # that one gets refusals
                self.add(now, conn, connection)

    def add(self, now: int, conn: int, connection: ClientConnection) -> None:
        connection.hold_input()
        self.waiting[conn] = True
        self.held[conn] = now

    def send(self, now: int, to_members: bool) -> bool:
        """Sends the pending DISCONNECTs. Returns True if all connections have ended."""
        self.host.end_lost(now)
        for conn in list(self.waiting):
            connection = self.connections.get(conn)
            if connection is None:
                del self.waiting[conn]
            elif self.waiting[conn] and isinstance(connection, ClientConnection):
                if not to_members and not connection.authenticated:
                    connection.refuse_requests(False)  # it may be a member
                    connection.opened += now - self.held[conn]  # it could not continue meanwhile
                    connection.release_input()
                    del self.waiting[conn]
                    continue
                self.waiting[conn] = False
                if to_members or not connection.cluster_peer:
                    connection.disconnect(now, now - self.held[conn])
                    if connection.reconnecting:  # it closes by itself and cannot do anything here
                        del self.waiting[conn]
                        continue
                self.host.closing.append((conn, "the node leaves"))
        return not self.waiting

    def answered(self) -> bool:
        """Returns True if everything that was read is on disk and its answers are sent."""
        return not (self.store.awaiting or self.store.acknowledging)


def report_refused(connections: dict[int, TransportConnection]) -> None:
    """Sends the DISCONNECT to connections that got refusals without one."""
    for connection in connections.values():
        if isinstance(connection, ClientConnection) and connection.disconnect_delayed:
            connection.send_delayed_disconnect()
