"""CORE as one of the protocols of a node, and the state that its connections share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.message.encoding.buffer import Reader
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.server.connection import CoreConnection
from atalanta.wire.core.server.reattach import Resumable
from atalanta.wire.protocol import MORE, NO, YES, Peer, Protocol

if TYPE_CHECKING:
    from atalanta.wire.connection import ClientConnection
    from atalanta.wire.core.config import AcceptorConfig
    from atalanta.wire.host import Host


class CoreProtocol(Protocol):
    """The CORE protocol of one node. A client begins with the seven bytes `ARTEMIS`.

    `metadata`: (key, value) -> the sessions that carry it, as (connection, channel), for unique metadata.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.name = "CORE"
        # For packets that are read in place; it keeps no state between packets.
        self.reader: Reader = Reader(b"")
        self.resumable = Resumable()
        self.metadata: dict[tuple[str, str], dict[tuple[int, int], bool]] = {}

    def recognises(self, first: bytes) -> int:
        if first.startswith(HANDSHAKE):
            return YES
        return MORE if HANDSHAKE.startswith(first) else NO

    def open(
        self, conn: int, peer: Peer, now: int, acceptor: AcceptorConfig | None
    ) -> ClientConnection:
        connection = CoreConnection(self, conn, peer.remote, now, acceptor)
        connection.server_name = peer.server_name
        connection.client.certificate = peer.certificate
        return connection

    def check(self, now: int) -> None:
        self.resumable.check(now)

    def end(self, now: int, conn: int) -> None:
        self.resumable.end(now, conn)

    def end_all(self, now: int) -> None:
        self.resumable.end_all(now)

    def add_metadata(self, owner: tuple[int, int], key: str, value: str) -> None:
        """Records the metadata of a session."""
        self.metadata.setdefault((key, value), {})[owner] = True

    def remove_metadata(self, owner: tuple[int, int], key: str, value: str) -> None:
        """Removes the metadata of a session."""
        owners = self.metadata.get((key, value))
        if owners is not None:
            owners.pop(owner, None)
            if not owners:
                del self.metadata[(key, value)]
