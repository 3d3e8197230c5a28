"""CORE as one of the protocols of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.server.connection import CoreConnection
from atalanta.wire.core.server.reattach import Resumable
from atalanta.wire.core.server.shared_state import SharedState
from atalanta.wire.protocol import MORE, NO, YES, Peer, Protocol

if TYPE_CHECKING:
    from atalanta.wire.connection import ClientConnection
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.server import WireServer


class CoreProtocol(Protocol):
    """The CORE protocol of one node. A client begins with the seven bytes `ARTEMIS`."""

    def __init__(self, host: WireServer) -> None:
        self.host = host
        self.name = "CORE"
        self.shared = SharedState()
        self.resumable = Resumable()

    def recognises(self, first: bytes) -> int:
        if first.startswith(HANDSHAKE):
            return YES
        return MORE if HANDSHAKE.startswith(first) else NO

    def open(
        self, conn: int, peer: Peer, now: int, acceptor: AcceptorConfig | None
    ) -> ClientConnection:
        connection = CoreConnection(
            self.host, self.shared, self.resumable, conn, peer.remote, now, acceptor
        )
        connection.describe(peer.server_name, peer.certificate)
        return connection

    def check(self, now: int) -> None:
        self.resumable.check(now)

    def end(self, now: int, conn: int) -> None:
        self.resumable.end(now, conn)

    def end_all(self, now: int) -> None:
        self.resumable.end_all(now)
