"""The output of a CORE connection, and the limits that its sessions put on its input and deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from atalanta.wire.client_output import ClientOutput
from atalanta.wire.core.frames import write_frame_header
from atalanta.wire.core.packet_types import (
    CLIENT_ID_VERSION,
    TOPOLOGY_V2_VERSION,
    TOPOLOGY_V3_VERSION,
    packet_name,
)
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.topology import (
    ClusterTopology,
    ClusterTopologyV2,
    ClusterTopologyV3,
    ClusterTopologyV4,
)

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.wire.core.packets.base import Packet
    from atalanta.wire.core.server.resend_buffer import Replay
    from atalanta.wire.core.server.shared_state import SharedState
    from atalanta.wire.core.transport import TransportConfiguration
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.server import WireServer

SERVER_VERSION: Final = 136


class FrameConnection(ClientOutput):
    """A CORE connection as its sessions use it: they write frames, and hold input or deliveries.

    `version` is 0 until the peer sent it. `pinned`: the client needs this node.
    """

    def __init__(
        self,
        host: WireServer,
        shared: SharedState,
        conn: int,
        remote: str,
        now: int,
        acceptor: AcceptorConfig | None,
    ) -> None:
        super().__init__(host, conn, remote, now, acceptor)
        self.shared = shared
        self.version: int = 0
        self.pinned: bool = False
        self.large_bytes: int = 0  # of unfinished large messages that are in memory, not in files

    def keep_large(self, size: int) -> None:
        """Counts bytes of an unfinished large message that stay in memory, or a negative number of them."""
        self.large_bytes += size

    # -- frames out -----------------------------------------------------------------------------
    def start_frame(self, packet_type: int, channel: i64, body_bytes: i64) -> BytesWriter:
        """Writes the header of a frame; the caller writes exactly `body_bytes` into the returned writer."""
        out = self.out
        if not self.dirty:  # as `flush_later` does; here it is no call, for every message
            self.dirty = True
            self.host.dirty.append(self.conn)
        write_frame_header(out, packet_type, channel, body_bytes)
        return out

    def send_frame(self, packet_type: int, channel: i64, body: bytes) -> None:
        self.start_frame(packet_type, channel, len(body)).write(body)

    def send(self, packet: Packet, channel: int) -> None:
        """Sends an answer to a packet of the client, or what it has asked for; without it the connection ends."""
        self._answer(packet, channel, self.version)

    def _answer(self, packet: Packet, channel: int, version: int) -> None:
        try:
            frame = codec.encode(packet, channel, version)
        except Exception as error:  # nothing was written, whatever it is
            self.end_unanswered(packet_name(packet.type), error)
            return
        self.send_bytes(frame)

    def tell(self, packet: Packet, channel: int) -> None:
        """Sends what others have caused. It is left out if it cannot be encoded."""
        try:
            frame = codec.encode(packet, channel, self.version)
        except Exception as error:  # nothing was written, whatever it is
            self.leave_out(packet_name(packet.type), error)
            return
        self.send_bytes(frame)

    def send_bytes(self, frame: bytes) -> None:
        self.flush_later()
        self.out.write(frame)

    def send_exception(
        self, channel: i64, error: BrokerError, correlation: int, version: int
    ) -> None:
        """Channel 1 has a short form without the correlation (the codec knows)."""
        self._answer(ExceptionResponse(error.code, error.text, correlation), int(channel), version)

    def refuse_login(self, error: BrokerError) -> None:
        self.send_exception(1, error, -1, self.version)

    # -- topology -------------------------------------------------------------------------------
    def member_up(
        self,
        node_id: str,
        event_id: int,
        primary: TransportConfiguration | None,
        backup: TransportConfiguration | None,
        last: bool,
        backup_group: str | None,
        scale_down_group: str | None,
    ) -> None:
        """Sends one topology entry, in the packet generation of the peer's version."""
        packet: ClusterTopology
        if self.version >= CLIENT_ID_VERSION or self.version == 0:
            packet = ClusterTopologyV4(exit=False, node_id=node_id)
        elif self.version >= TOPOLOGY_V3_VERSION:
            packet = ClusterTopologyV3(exit=False, node_id=node_id)
        elif self.version >= TOPOLOGY_V2_VERSION:
            packet = ClusterTopologyV2(exit=False, node_id=node_id)
        else:
            packet = ClusterTopology(exit=False, node_id=node_id)
        packet.event_id = event_id
        packet.primary = primary
        packet.backup = backup
        packet.last = last
        packet.backup_group = backup_group
        packet.scale_down_group = scale_down_group
        packet.server_version = SERVER_VERSION
        self.tell(packet, 0)

    def member_down(self, node_id: str, event_id: int) -> None:
        """Sends a leaving member in the second generation, as Artemis 2.44 does."""
        if 0 < self.version < TOPOLOGY_V2_VERSION:
            self.tell(ClusterTopology(exit=True, node_id=node_id), 0)
        else:
            self.tell(ClusterTopologyV2(exit=True, node_id=node_id, event_id=event_id), 0)

    # -- the login ------------------------------------------------------------------------------
    def stays_without_login(self, now: int) -> bool:
        if self.authenticated or self.logins or self.holds > 0:
            return False
        return self.handshake_overdue(now)

    # -- the end of a session -------------------------------------------------------------------
    def remove_session(self, channel: int) -> None:
        """Removes the session of the channel, which is closed."""
        raise NotImplementedError

    def end_by_operator(self, channel: int) -> None:
        """Removes the session that an operator closed; the client gets an error for its next request."""
        raise NotImplementedError

    def forget_replay(self, replay: Replay) -> None:
        """Records that the session with that replay is closed: it cannot be reattached."""
        raise NotImplementedError
