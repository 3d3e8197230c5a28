"""STOMP as one of the protocols of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.heart_beats import HeartBeats
from atalanta.wire.protocol import MORE, NO, YES, Peer, Protocol
from atalanta.wire.stomp.connection import StompConnection
from atalanta.wire.wildcard_queues import WildcardQueues

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.wire.connection import ClientConnection
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.server import WireServer

QUEUES_TIMER: Final = "wire.stomp.queues"
BEGINNINGS: Final = (b"CONNECT\n", b"CONNECT\r\n", b"STOMP\n", b"STOMP\r\n")
BEAT_TIMER: Final = "wire.stomp"


class StompProtocol(Protocol):
    """The STOMP protocol of one node. A client begins with the command CONNECT or STOMP and a line end."""

    def __init__(self, host: WireServer, timers: Timers) -> None:
        self.host = host
        self.name = "STOMP"
        self.subprotocols = ("v12.stomp", "v11.stomp", "v10.stomp")
        self.beats = HeartBeats(timers, BEAT_TIMER)
        self.wildcard_queues = WildcardQueues(timers, QUEUES_TIMER)
        host.broker.add_observer(self.wildcard_queues)

    def recognises(self, first: bytes) -> int:
        for beginning in BEGINNINGS:
            if first.startswith(beginning):
                return YES
            if beginning.startswith(first):
                return MORE
        return NO

    def open(
        self, conn: int, peer: Peer, now: int, acceptor: AcceptorConfig | None
    ) -> ClientConnection:
        connection = StompConnection(
            self.host, self.beats, self.wildcard_queues, conn, peer.remote, now, acceptor
        )
        connection.describe(peer.server_name, peer.certificate)
        return connection

    def on_timer(self, now: int, key: str) -> None:
        if key == BEAT_TIMER:
            self.beats.on_timer(now)
        elif key == QUEUES_TIMER:
            self.wildcard_queues.on_timer(now)
