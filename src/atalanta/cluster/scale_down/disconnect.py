"""How a leaving node parts from those who are connected to it.

From the freeze on nothing more of them is read. They are told where to go only when the target knows all duplicate ids
of this node: whoever then repeats there what was never answered here is recognized. If the target is not there so long,
clients are told all the same, since they would wait for nothing; other members are not: they keep what this node may
have got until they hear of it again. Who has not said yet whether it is a member only gets refusals until then, and
so does who comes to a node that a crash interrupted.

Who is just arriving (wire/core/server/connection.py, `stop`) may be deaf to good-byes and to the end of its connection
until
its questions are answered: it gets refusals, and the good-bye, and closes the connection itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.connection.bridge import Bridge
from atalanta.cluster.core_bridges.link import CoreBridgeLink
from atalanta.cluster.scale_down.link import TargetLink
from atalanta.wire.connection import ClientConnection, Connection

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.wire.host import Host

# So long clients and members are held back for a target that is lost just now.
HOLD_NS: Final = 10_000_000_000


class Goodbyes:
    """`waiting`: connections that end before anything is moved -> whether they have to be told; `held`: since when."""

    def __init__(
        self, broker: Broker, host: Host, connections: dict[int, Connection], now: int
    ) -> None:
        self.broker = broker
        self.host = host
        self.connections = connections
        self.waiting: dict[int, bool] = {}
        self.held: dict[int, int] = {}
        self.until = now + HOLD_NS

    def hold(self, now: int, askers: dict[int, bool]) -> None:
        """Nothing more is taken up from anybody but who asked for the departure and wants to see it."""
        for conn, connection in list(self.connections.items()):
            if isinstance(connection, ClientConnection):
                if conn not in askers:
                    self.add(now, conn, connection)
            elif isinstance(connection, CoreBridgeLink):
                self.waiting[conn] = False  # when what it sent is answered
            elif not isinstance(connection, Bridge | TargetLink):
                connection.stop(now)

    def add(self, now: int, conn: int, connection: ClientConnection) -> None:
        connection.hold_input()
        self.waiting[conn] = True
        self.held[conn] = now

    def say(self, now: int, to_members: bool) -> bool:
        """Whether all of them are gone."""
        self.host.end_lost(now)
        for conn in list(self.waiting):
            connection = self.connections.get(conn)
            if connection is None:
                del self.waiting[conn]
            elif self.waiting[conn] and isinstance(connection, ClientConnection):
                if not to_members and not connection.authenticated:
                    connection.refuse(False)  # nobody knows yet who that is
                    connection.opened += now - self.held[conn]  # it could not go on meanwhile
                    connection.release_input()
                    del self.waiting[conn]
                    continue
                self.waiting[conn] = False
                if to_members or not connection.cluster_peer:
                    connection.turn_away(now, now - self.held[conn])
                    if connection.arriving:  # it goes by itself, and cannot do anything here
                        del self.waiting[conn]
                        continue
                self.host.closing.append((conn, "the node leaves"))
        return not self.waiting

    def answered(self) -> bool:
        """All that was taken up is on disk, and its answers are out."""
        return not (self.broker.store.awaiting or self.broker.store.acknowledging)


def tell_refused(connections: dict[int, Connection]) -> None:
    """Those who got no good-bye with their refusals."""
    for connection in connections.values():
        if isinstance(connection, ClientConnection) and connection.untold:
            connection.tell()
