"""A peer that speaks one protocol version, as a real Artemis of it does: logins, sessions, answers to sends."""

from __future__ import annotations

from atalanta.sim.nodes import CLUSTER_PASSWORD, PORT
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterConnect, ClusterConnectReply
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.message import SendContinuation, SendMessage
from atalanta.wire.core.packets.producer import ProducerCredits, RequestProducerCredits
from atalanta.wire.core.packets.query import BindingQuery, BindingQueryResponseV4
from atalanta.wire.core.packets.session import CreateSession, CreateSessionResponse
from atalanta.wire.core.packets.topology import (
    ClusterTopology,
    ClusterTopologyV3,
    ClusterTopologyV4,
    SubscribeTopologyV2,
)
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.cluster_rig import RawPeer, Rig


class OldPeer(RawPeer):
    """Refuses sessions of versions above its own. `taken` are the messages that it has answered."""

    def __init__(self, rig: Rig, name: str, version: int) -> None:
        super().__init__(rig, name)
        self.version = version
        self.taken: list[SendMessage | SendContinuation] = []
        self.asked_at: list[int] = []  # when sessions of the oldest version were requested, ns

    def on_bytes(self, conn: int, data: bytes) -> None:
        for frame in self.framers[conn].feed(data):
            packet = codec.decode_frame(frame, self.version)
            self.packets.append((conn, frame.channel, packet))
            answer = self._answer(packet)
            if answer is not None:
                channel = CLUSTER_CHANNEL if isinstance(answer, ClusterConnectReply) else frame.channel
                self.write(codec.encode(answer, channel, self.version), conn)

    def _answer(self, packet: Packet) -> Packet | None:
        if isinstance(packet, ClusterConnect):
            return ClusterConnectReply(packet.password == CLUSTER_PASSWORD)
        if isinstance(packet, SubscribeTopologyV2):
            return self._entry()
        if isinstance(packet, CreateSession):
            if packet.version == 129:
                self.asked_at.append(self.rig.world.now)
            if packet.version > self.version:
                return ExceptionResponse(108, "AMQ229033: Server and client versions incompatible")
            return CreateSessionResponse(self.version)
        if isinstance(packet, BindingQuery):
            return BindingQueryResponseV4(exists=True, queue_names=[packet.address])
        if isinstance(packet, RequestProducerCredits):
            return ProducerCredits(packet.credits, packet.address)
        if isinstance(packet, SendMessage | SendContinuation) and packet.requires_response:
            self.taken.append(packet)
            return NullResponse(packet.correlation)
        return None

    def _entry(self) -> ClusterTopology:
        kind = ClusterTopologyV4 if self.version >= 131 else ClusterTopologyV3
        entry = kind(exit=False, node_id="old", event_id=1)
        entry.primary = TransportConfiguration.tcp("x", self.name, PORT)
        entry.last = True
        entry.server_version = self.version
        return entry
