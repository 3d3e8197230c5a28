"""STOMP: the decoder of frames, conversations with a broker, and the frames of a WebSocket."""

from __future__ import annotations

from atalanta.kernel.broker.invariants import validate
from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.decoder import FrameDecoder
from atalanta.wire.stomp.frame import V10, V11, V12
from atalanta.wire.web_socket import WebSocket
from tests.fuzz.mutator import Mutator
from tests.fuzz.target import Target
from tests.kernel.broker_rig import SECOND
from tests.wire.stomp.stomp_rig import StompClient, StompServer, classic_server, frame

INPUTS_OF_A_SERVER = 50
CONNECT = frame("CONNECT", {"login": "admin", "passcode": "admin", "accept-version": "1.2", "heart-beat": "0,500"})
FRAMES = (
    frame("SUBSCRIBE", {"id": "1", "destination": "/queue/a", "ack": "client", "receipt": "1"}),
    frame("SUBSCRIBE", {"id": "2", "destination": "/topic/t", "selector": "n > 1", "consumer-window-size": "0"}),
    frame("SUBSCRIBE", {"id": "3", "destination": "a", "ack": "client-individual", "activemq.prefetchSize": "1"}),
    frame("SUBSCRIBE", {"id": "4", "destination": "/topic/t", "durable-subscription-name": "d"}),
    frame("SUBSCRIBE", {"id": "5", "destination": "/queue/a,/queue/b", "ack": "client", "activemq.exclusive": "true"}),
    frame("SUBSCRIBE", {"id": "6", "destination": "/queue/q.>", "ack": "client", "activemq.priority": "5"}),
    frame("SUBSCRIBE", {"id": "7", "destination": "/queue/a", "ack": "client", "browser": "true"}),
    frame("SUBSCRIBE", {"id": "8", "destination": "/queue/Consumer.A.VirtualTopic.T", "activemq.retroactive": "true"}),
    frame("SEND", {"destination": "/queue/q.a,/queue/b,/topic/VirtualTopic.T", "timestamp": "1", "receipt": "4"}, b"x"),
    frame("SEND", {"destination": "/queue/a", "content-length": "3", "persistent": "true", "receipt": "2"}, b"\0\n\0"),
    frame("SEND", {"destination": "/queue/a", "reply-to": "/temp-queue/r", "a\\c": "b\\n\\\\"}, b"text"),
    frame("SEND", {"destination": "a::b", "expires": "1", "priority": "9", "AMQ_SCHEDULED_DELAY": "100"}),
    frame("SEND", {"destination": "/queue/a", "AMQ_SCHEDULED_CRON": "*/5 1-3 * JAN 7", "AMQ_SCHEDULED_PERIOD": "9"}),
    frame("SEND", {"destination": "/queue/a", "transaction": "t", "JMSXGroupID": "g", "_AMQ_DUPL_ID": "d"}),
    frame("SEND", {"destination": "/temp-queue/r", "correlation-id": "c", "type": "t"}),
    frame("SEND", {"destination": "activemq.management", "reply-to": "/queue/a"}, b"x"),
    frame("BEGIN", {"transaction": "t"}),
    frame("COMMIT", {"transaction": "t", "receipt": "3"}),
    frame("ABORT", {"transaction": "t"}),
    frame("ACK", {"id": "1,1700000000000000"}),
    frame("ACK", {"id": "1,1700000000000001", "transaction": "t"}),
    frame("NACK", {"id": "1,1700000000000000", "requeue": "false"}),
    frame("ACK", {"id": "5,1700000000000001", "subscription": "5"}),
    frame("NACK", {"id": "3,1700000000000001", "transaction": "t"}),
    frame("UNSUBSCRIBE", {"id": "1"}),
    frame("UNSUBSCRIBE", {"id": "4", "durable-subscription-name": "d"}),
    b"\n\r\n\n",
    frame("DISCONNECT", {"receipt": "9"}),
)  # fmt: skip
WORDS = (
    b"SEND\n", b"SUBSCRIBE\n", b"ACK\n", b"NACK\n", b"BEGIN\n", b"COMMIT\n", b"ABORT\n", b"\n\n", b"\r\n", b"\0",
    b"content-length:", b"destination:", b"transaction:t\n", b"receipt:1\n", b"\\n", b"\\c", b"\\x", b"/temp-queue/r",
    b"/topic/", b"id:1\n",
)  # fmt: skip


class StompFrameTarget(Target):
    """u8 version, login and file · u8 pieces · a stream: cut into as many pieces, the frames are those of the whole."""

    name = "stomp frames"
    refusals = (ProtocolError,)
    words = WORDS

    def seeds(self) -> list[bytes]:
        made = [bytes([state, state]) + CONNECT + b"".join(FRAMES) for state in range(4)]
        return made + [bytes([1, 5]) + each for each in FRAMES] + [b"\x05\x05" + each for each in FRAMES]

    def run(self, data: bytes) -> None:
        state, pieces = (data[0], data[1] + 1) if len(data) > 1 else (0, 1)
        stream = data[2:]
        step = max(1, len(stream) // pieces)
        found = self._frames(state, [stream[at : at + step] for at in range(0, len(stream), step)])
        assert found == self._frames(state, [stream])

    def _frames(self, state: int, pieces: list[bytes]) -> list[tuple[str, dict[str, str], bytes]]:
        decoder = FrameDecoder(state & 4 != 0)
        if state % 4:
            decoder.admit((V10, V11, V12)[state % 4 - 1])
        found = []
        for piece in pieces:
            decoder.begin(piece)
            while (got := decoder.step()) is not None:
                found.append((got.command, got.headers, got.body))
        return found


class WebSocketTarget(Target):
    """u8 pieces · frames of a client: cut into as many pieces, they carry what the whole carries."""

    name = "web socket"
    refusals = (DecodeError,)

    def seeds(self) -> list[bytes]:
        mask = b"\x01\x02\x03\x04"
        text = b"\x81\x85" + mask + b"hello" + b"\x01\x81" + mask + b"x" + b"\x80\x81" + mask + b"y"
        control = b"\x89\x82" + mask + b"pi" + b"\x88\x82" + mask + b"\x03\xe8"
        return [
            b"\x05" + text + control,
            b"\x03\x82\xfe\x01\x00" + mask + bytes(256),
            b"\x02\x82\xff" + (300).to_bytes(8, "big") + mask + bytes(300),
        ]

    def run(self, data: bytes) -> None:
        pieces, stream = (data[0] if data else 0) + 1, data[1:]
        step = max(1, len(stream) // pieces)
        cut, whole = WebSocket(), WebSocket()
        carried = b"".join(cut.receive(stream[at : at + step]) for at in range(0, len(stream), step))
        assert carried == whole.receive(stream)
        assert cut.closed == whole.closed and cut.take_answers() == whole.take_answers()


class StompTarget(Target):
    """u8 flags · u8 pieces · what a client sends. The broker lives on; its books must agree after every input.

    Its file is a broker.xml and an activemq.xml in turn.
    """

    name = "stomp"
    base_bytes = 3 << 20
    bytes_per_byte = 512
    words = WORDS

    def __init__(self) -> None:
        self.inputs = 0
        self.classic = False
        self.server = StompServer()

    def mutator(self) -> Mutator:
        return Mutator(self.size_max, self.words)

    def seeds(self) -> list[bytes]:
        return [b"\x01\x03" + b"".join(FRAMES), b"\x00\x02" + CONNECT + b"".join(FRAMES[:12]), b"\x01\x00" + FRAMES[0]]

    def fresh(self) -> None:
        self.inputs = 0
        self.classic = not self.classic
        self.server = classic_server() if self.classic else StompServer()

    def stale(self) -> bool:
        return self.inputs >= INPUTS_OF_A_SERVER

    def run(self, data: bytes) -> None:
        self.inputs += 1
        server = self.server
        flags, pieces = (data[0], data[1]) if len(data) > 1 else (0, 0)
        stream = data[2:]
        client = server.stomp_client(client_id="c") if flags & 1 else StompClient(server)
        step = max(1, len(stream) // (pieces % 8 + 1))
        for at in range(0, len(stream), step):
            client.feed(stream[at : at + step])
            if pieces & 128:
                server.settle()
        server.settle()
        server.now += SECOND
        server.beat()
        client.output()
        if client.conn in server.connections:
            server.lost(client.conn)
        server.settle()
        validate(server.broker)
