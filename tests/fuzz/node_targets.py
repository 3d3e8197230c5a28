"""Conversations: frames from all kinds of peers to a node that lives on, and from a broker to the client engine."""

from __future__ import annotations

import random

from atalanta.cluster.discovery.discovery import HEARS
from atalanta.sim.world.planted_commands import PlantedCommands
from atalanta.wire.connection import ClientConnection, TransportConnection
from atalanta.wire.core.broadcast_datagram import Announcement, encode_announcement
from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.connection import NullResponse, Ping
from atalanta.wire.core.packets.message import SendContinuation, SendLargeMessage
from atalanta.wire.core.packets.session import AddMetadata, CreateSessionResponse, CreateSessionV2
from atalanta.wire.core.packets.topology import SubscribeTopologyV2
from atalanta.wire.openwire.options import HANDSHAKE as OPENWIRE_HANDSHAKE
from atalanta.wire.openwire.options import info_of
from atalanta.wire.openwire.wire_format import WireFormat
from tests.fuzz.mutator import FrameMutator, Mutator
from tests.fuzz.node_rig import GROUP, NodeRig
from tests.fuzz.openwire_targets import PLAIN, commands_of_a_client
from tests.fuzz.stomp_targets import CONNECT, FRAMES
from tests.fuzz.target import Target
from tests.fuzz.wire_targets import captured_frames, sample_frames
from tests.kernel.broker_rig import SECOND, RecordingTrace
from tests.wire.core.client.engine_rig import Pair, connected, encoded
from tests.wire.core.samples import sample_transport
from tests.wire.core.server.random_client import Chaos
from tests.wire.core.server.server_rig import text_message

INPUTS_OF_A_NODE = 50
CHAOS_PACKETS = 400
MISTAKES = 0.05  # of the commands
MODES = ("stranger", "admin", "branch", "guest", "peer", "link", "datagram", "old")
OLD = MODES.index("old")


def client_frames() -> list[bytes]:
    """Packets that make sense together, and one of every type, on the channels they belong to."""
    made = []
    for seed in range(4):
        chaos = Chaos(seed)
        made += [codec.encode(chaos.packet(), 10) for _ in range(CHAOS_PACKETS // 4)]
    head = text_message("a", "")
    made += [codec.encode(SendLargeMessage(head), 10)] * 30
    for more in (True, False):
        made += [
            codec.encode(
                SendContinuation(
                    b"x" * 300,
                    continues=more,
                    body_size=600,
                    requires_response=not more,
                    correlation=-9,
                    sender_id=0,
                ),
                10,
            )
        ] * 30
    for frame in sample_frames():
        made += [frame, frame[:5] + bytes(7) + b"\x00" + frame[13:], frame[:5] + bytes(7) + b"\x01" + frame[13:]]
    return made


class NodeTarget(Target):
    """u8 kind of peer · u8 pieces · what it sends. The node lives on; its books must agree after every input.

    A stranger, who did not log in, must leave it as it was.
    """

    name = "node"
    base_bytes = 3 << 20
    bytes_per_byte = 512

    def __init__(self) -> None:
        self.inputs = 0
        self.rig = NodeRig()

    def mutator(self) -> Mutator:
        return FrameMutator(self.size_max, 2, client_frames())

    def seeds(self) -> list[bytes]:
        frames = client_frames()
        captured = [frames.replace(HANDSHAKE, b"") for frames in captured_frames("client")]
        made = [bytes([mode, 3]) + b"".join(frames[mode * 10 : mode * 10 + 10]) for mode in range(8)]
        made += [bytes([n % 8, n]) + stream[: self.size_max] for n, stream in enumerate(captured)]
        old = captured_frames("client", True)[:40]
        made += [bytes([OLD, n]) + stream[: self.size_max] for n, stream in enumerate(old)]
        polite = [
            codec.encode(Ping(60_000), 0),
            codec.encode(SubscribeTopologyV2(True, 136), 0),
            codec.encode(
                CreateSessionV2(
                    name="s", session_channel=11, version=136, user="admin", password="wrong"
                ),
                1,
            ),
        ]
        answers = [
            codec.encode(CreateSessionResponse(136), 1),
            *[codec.encode(NullResponse(number), 10) for number in (-1, -2, -3)],
        ]
        made.append(b"\x00\x02" + b"".join(polite))
        made.append(b"\x05\x01" + b"".join(answers))
        made.append(b"\x06\x00" + encode_announcement(Announcement("n", "u", [sample_transport()])))
        return made

    def fresh(self) -> None:
        self.inputs = 0
        self.rig = NodeRig()

    def stale(self) -> bool:
        return self.inputs >= INPUTS_OF_A_NODE

    def run(self, data: bytes) -> None:
        self.inputs += 1
        rig = self.rig
        mode = MODES[data[0] % len(MODES)] if data else "stranger"
        pieces = data[1] if len(data) > 1 else 0
        stream = data[2:]
        if mode == "datagram":
            rig.node.on_datagram(rig.now, HEARS + GROUP, stream)
            rig.settle()
        elif mode == "stranger":
            self._stranger(stream, pieces)
        else:
            conn = self._peer(mode)
            self._say(conn, stream, pieces)
            rig.gone(conn)
        rig.pass_time(SECOND)
        rig.check()

    def _peer(self, mode: str) -> int:
        rig = self.rig
        if mode == "link":
            rig.node.on_datagram(
                rig.now, HEARS + GROUP, encode_announcement(Announcement("n", "u", [sample_transport()]))
            )
            return rig.dialled()
        if mode == "peer":
            return rig.cluster_peer()
        if mode == "guest":
            return rig.login("guest", "guest")
        if mode == "old":
            conn = rig.login("admin", "admin", version=128)
            rig.send(conn, AddMetadata("jms-session", ""))
            return conn
        conn = rig.login("admin", "admin", mode == "branch", 2_000 if mode == "branch" else -1)
        rig.consuming(conn)
        return conn

    def _stranger(self, stream: bytes, pieces: int) -> None:
        rig = self.rig
        rig.settle()
        before = rig.state()
        sessions = rig.sessions.created
        conn = rig.accept()
        connection: TransportConnection | None = rig.node.connections[conn]
        self._say(conn, stream if pieces & 64 else HANDSHAKE + stream, pieces)
        connection = rig.node.connections.get(conn, connection)
        assert isinstance(connection, ClientConnection)
        # A connection that logs in and is closed in one piece of the stream is not seen with its login.
        logged_in = connection.authenticated or rig.sessions.created > sessions
        if not logged_in and not rig.notified():
            assert rig.state() == before, f"{before} became {rig.state()}"
        rig.gone(conn)

    def _say(self, conn: int, stream: bytes, pieces: int) -> None:
        rig = self.rig
        step = max(1, len(stream) // (pieces % 8 + 1))
        for at in range(0, len(stream), step):
            if conn not in rig.node.connections:
                break
            rig.receive(conn, stream[at : at + step])
            if pieces & 128:
                rig.settle()
        rig.settle()


class MistakenNodeTarget(NodeTarget):
    """As `node`, where commands fail by mistakes that are planted: each costs its connection only."""

    name = "node with mistakes"

    def __init__(self) -> None:
        super().__init__()
        self.fresh()

    def fresh(self) -> None:
        self.inputs = 0
        self.rig = NodeRig(PlantedCommands(random.Random(1), MISTAKES))
        trace = self.rig.node.ports.trace
        assert isinstance(trace, RecordingTrace)
        trace.expects_failures = True

    def seeds(self) -> list[bytes]:
        form = WireFormat(PLAIN)
        openwire = WireFormat(OPENWIRE_HANDSHAKE).encode(info_of(PLAIN))
        openwire += b"".join(form.encode(each) for each in commands_of_a_client())
        # A stranger's bytes decide about the protocol.
        others = [b"\x00\x42" + CONNECT + b"".join(FRAMES), b"\x00\x42" + openwire]
        return super().seeds() + others


class ClientTarget(Target):
    """u8 pieces · what a broker sends to an engine that waits for answers and messages."""

    name = "client"
    base_bytes = 2 << 20
    bytes_per_byte = 512

    def mutator(self) -> Mutator:
        return FrameMutator(self.size_max, 1, sample_frames())

    def seeds(self) -> list[bytes]:
        frames = sample_frames()
        made = [b"\x00" + b"".join(frames[at : at + 5]) for at in range(0, len(frames), 5)]
        return made + [b"\x01" + stream[: self.size_max] for stream in captured_frames("server")]

    def run(self, data: bytes) -> None:
        pieces, stream = (data[0] if data else 0), data[1:]
        pair = connected(resume=pieces & 8 != 0)
        session = pair.session(transacted=pieces & 16 != 0)
        pair.run()
        consumer, _ = session.consumer("q")
        producer = session.producer("q")
        producer.send_message(encoded("text"))
        session.start()
        pair.client.flush()
        step = max(1, len(stream) // (pieces % 8 + 1))
        for at in range(0, len(stream), step):
            pair.client.feed(pair.now, stream[at : at + step])
            if any(told.startswith("broken") for told in pair.events.told):
                break
        while (delivery := consumer.take()) is not None:
            repr(delivery.message.properties.items())
            consumer.acknowledge_one(delivery)
        self._go_on(pair)

    def _go_on(self, pair: Pair) -> None:
        """Whatever it was told, it can tick, lose its connection and be closed."""
        pair.client.flush()
        pair.tick(1)
        pair.client.lost(pair.now, "cut")
        try:
            pair.client.start(pair.now)
            pair.client.flush()
        except ClientError as error:
            repr(error)
        pair.client.close()
