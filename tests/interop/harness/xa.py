"""A client in the bare protocol that works in distributed transactions, for any CORE broker."""

from __future__ import annotations

import socket
from collections.abc import Callable

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets.message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
    ReceiveMessage,
    SendContinuation,
    SendLargeMessage,
    SendMessage,
)
from atalanta.wire.core.packets.session import CreateSession, CreateSessionResponse, SessionStart
from atalanta.wire.core.packets.transaction import XaInDoubt, XaInDoubtResponse, XaResponse, Xid

CHANNEL = 10
TIMEOUT_S = 20.0
VERSION = 135
PIECE = 100_000


class XaClient:
    """`with XaClient(port, user, password) as client:` has one XA session; every call waits for its answer."""

    def __init__(self, port: int, user: str, password: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.socket.settimeout(TIMEOUT_S)
        self.framer = Framer(False)
        self.packets: list[Packet] = []
        self.socket.sendall(HANDSHAKE)
        self.say(Ping(60_000), 0)
        self.say(
            CreateSession(
                name="xa",
                session_channel=CHANNEL,
                version=VERSION,
                user=user,
                password=password,
                xa=True,
                auto_commit_sends=False,
                auto_commit_acks=False,
            ),
            1,
        )
        self.wait(lambda packet: isinstance(packet, CreateSessionResponse))

    def __enter__(self) -> XaClient:
        return self

    def __exit__(self, *failure: object) -> None:
        self.socket.close()

    def say(self, packet: Packet, channel: int = CHANNEL) -> None:
        self.socket.sendall(codec.encode(packet, channel, VERSION))

    def wait(self, wanted: Callable[[Packet], bool]) -> Packet:
        """The next packet of that kind; others are passed over."""
        while True:
            while self.packets:
                packet = self.packets.pop(0)
                if wanted(packet):
                    return packet
            data = self.socket.recv(65_536)
            assert data, "the broker closed the connection"
            for frame in self.framer.feed(data):
                self.packets.append(codec.decode_frame(frame))

    def do(self, packet: Packet) -> None:
        """A verb of XA, which must succeed."""
        self.say(packet)
        answer = self.wait(lambda each: isinstance(each, XaResponse))
        assert isinstance(answer, XaResponse)
        assert not answer.error, f"{answer.code}: {answer.message}"

    def send(self, address: str, text: str) -> None:
        """A durable message to an anycast address."""
        body = text.encode()
        message = Message.create(address, body, 4, True, 1, 4)
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        self.say(SendMessage(message, sender_id=1))

    def send_large(self, address: str, body: bytes) -> None:
        """The same in pieces."""
        message = Message.create(address, b"", 4, True, 1, 4)
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        self.say(SendLargeMessage(message))
        for start in range(0, len(body), PIECE):
            last = start + PIECE >= len(body)
            piece = body[start : start + PIECE]
            self.say(SendContinuation(piece, continues=not last, body_size=len(body), sender_id=1))

    def take_large(self, queue: str) -> bytes:
        """One large message, received and acknowledged."""
        self.say(CreateConsumer(consumer_id=0, queue=queue, requires_response=False))
        self.say(SessionStart())
        self.say(FlowToken(0, 100 << 20))
        header = self.wait(lambda each: isinstance(each, ReceiveLargeMessage))
        assert isinstance(header, ReceiveLargeMessage)
        body = b""
        while True:
            piece = self.wait(lambda each: isinstance(each, ReceiveContinuation))
            assert isinstance(piece, ReceiveContinuation)
            body += piece.body
            if not piece.continues:
                break
        self.say(IndividualAcknowledge(0, header.message.id, False))
        return body

    def take(self, queue: str) -> bytes:
        """One message, received and acknowledged."""
        self.say(CreateConsumer(consumer_id=0, queue=queue, requires_response=False))
        self.say(SessionStart())
        self.say(FlowToken(0, 1))
        packet = self.wait(lambda each: isinstance(each, ReceiveMessage))
        assert isinstance(packet, ReceiveMessage)
        self.say(IndividualAcknowledge(0, packet.message.id, False))
        return bytes(packet.message.body)

    def in_doubt(self) -> list[Xid]:
        self.say(XaInDoubt())
        answer = self.wait(lambda each: isinstance(each, XaInDoubtResponse))
        assert isinstance(answer, XaInDoubtResponse)
        return answer.xids
