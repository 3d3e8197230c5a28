"""Clients of OpenWire, STOMP and WebSocket on plain sockets, which stop in the middle of whatever they do."""

from __future__ import annotations

import hashlib
import itertools
import os
import select
import socket
from pathlib import Path

from atalanta.wire.core.frames import FRAME_OVERHEAD_BYTES
from atalanta.wire.openwire.commands.connections import ConnectionInfo, WireFormatInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from atalanta.wire.openwire.commands.identifiers import (
    ConnectionId,
    MessageId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import ActiveMQBytesMessage, OpenWireMessage
from atalanta.wire.openwire.commands.producers import ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.encoding.structure import Command, DataStructure
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.wire_format import WireFormat
from tests.broker_xml import USE, permissions, write_broker_xml, write_users

ANSWER_S = 60.0
PASSWORD = "secret"
UPGRADE = (
    b"GET /stomp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v12.stomp\r\n\r\n"
)
RIGHTS = [name for name in USE if name != "browse"]
numbers = itertools.count(1)


def write_secured(folder: Path, port: int, iterations: int, more: str = "") -> Path:
    """A broker.xml with the users "anna" and "bert", whose password is hashed in so many iterations; "none" may log
    in only."""
    salt = os.urandom(16)
    digest = hashlib.pbkdf2_hmac("sha1", PASSWORD.encode(), salt, iterations, 20)
    stored = f"ENC({iterations}:{salt.hex()}:{digest.hex()})"
    path = write_broker_xml(folder, port, more=permissions("users", RIGHTS) + more, security=True)
    write_users(
        path,
        dict.fromkeys(("anna", "bert", "none"), stored),
        {"users": "anna,bert", "nobody": "none"},
    )
    return path


class RawClient:
    """A socket to the broker; `got` are the bytes that came and were not looked at."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_S)
        self.got = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_some(self, data: bytes, seconds: float = 1.0) -> int:
        """Sends as much as the broker takes: it stops when nothing was taken for so long. Returns the number of bytes,
        -1 if the broker has closed."""
        view = memoryview(data)
        self.socket.setblocking(False)
        try:
            while view:
                _, writable, _ = select.select([], [self.socket], [], seconds)
                if not writable:
                    break
                view = view[self.socket.send(view) :]
        except OSError:
            return -1
        finally:
            self.socket.settimeout(ANSWER_S)
        return len(data) - len(view)

    def receive(self) -> bytes:
        """The next bytes; b"" after the end."""
        try:
            return self.socket.recv(1 << 18)
        except ConnectionError:
            return b""

    def ended(self) -> str:
        """Waits until the broker closes; what it sent before, as text."""
        while data := self.receive():
            self.got += data
        return self.got.decode("utf-8", "replace")

    def close(self) -> None:
        self.socket.close()


class StompSocket(RawClient):
    """STOMP; with `in_web_socket` each write is one frame of a WebSocket."""

    def __init__(self, port: int, in_web_socket: bool = False) -> None:
        super().__init__(port)
        self.in_web_socket = in_web_socket
        if in_web_socket:
            super().send(UPGRADE)
            self.until(b"\r\n\r\n")

    def wrapped(self, data: bytes) -> bytes:
        """The bytes as they go over the wire; the mask is zero."""
        if not self.in_web_socket:
            return data
        return b"\x82\xff" + len(data).to_bytes(8, "big") + b"\0\0\0\0" + data

    def until(self, end: bytes) -> bytes:
        """The bytes up to this end."""
        while end not in self.got:
            data = self.receive()
            assert data, f"the broker has closed: {self.got!r}"
            self.got += data
        found, _, self.got = self.got.partition(end)
        return found

    def begin_login(self, user: str, password: str, client_id: str = "") -> None:
        name = f"client-id:{client_id}\n" if client_id else ""
        head = f"CONNECT\naccept-version:1.2\nhost:h\nlogin:{user}\npasscode:{password}\n{name}\n\0"
        self.send(self.wrapped(head.encode()))

    def log_in(self, user: str = "anna", client_id: str = "") -> None:
        self.begin_login(user, PASSWORD, client_id)
        assert b"CONNECTED" in self.until(b"\0")

    def message(self, queue: str, body: bytes, receipt: str = "") -> bytes:
        """A SEND frame."""
        wanted = f"receipt:{receipt}\n" if receipt else ""
        head = f"SEND\ndestination:/queue/{queue}\ncontent-length:{len(body)}\n{wanted}\n"
        return self.wrapped(head.encode() + body + b"\0")

    def post(self, queue: str, body: bytes) -> None:
        """Sends a message and waits for its receipt."""
        name = str(next(numbers))
        self.send(self.message(queue, body, name))
        answer = self.until(b"\0")
        assert b"RECEIPT" in answer and name.encode() in answer, answer


class OpenWireSocket(RawClient):
    """OpenWire, without signs of life."""

    def __init__(self, port: int, client_id: str = "") -> None:
        super().__init__(port)
        self.id = f"ID:raw-{os.getpid()}-{next(numbers)}"
        self.client_id = client_id or self.id
        options = WireFormatOptions(inactivity_ms=0)
        self.decoder = FrameDecoder(options)
        self.decoder.open()
        self.commands = 0
        self.pending: list[DataStructure] = []
        self.send(WireFormat(HANDSHAKE).encode(info_of(options)))
        self.until(WireFormatInfo)

    def next(self) -> DataStructure | None:
        """The next command; None after the end."""
        while True:
            found = self.decoder.next()
            if found is not None:
                return found
            data = self.receive()
            if not data:
                return None
            self.decoder.feed(data)

    def until(self, kind: type[DataStructure]) -> DataStructure:
        """The next command of a kind."""
        while True:
            found = self.next()
            assert found is not None, f"the broker has closed instead of {kind.__name__}"
            if isinstance(found, kind):
                return found

    def frame(self, command: Command, wanted: bool = False) -> bytes:
        """The bytes of a command."""
        self.commands += 1
        command.command_id = self.commands
        command.response_required = wanted
        return self.decoder.format.encode(command)

    def begin_login(self, user: str, password: str) -> None:
        self.send(self.frame(ConnectionInfo(ConnectionId(self.id), self.client_id, password, user), True))

    def log_in(self, user: str = "anna") -> None:
        self.begin_login(user, PASSWORD)
        answer = self.until(Response)
        assert not isinstance(answer, ExceptionResponse), answer.exception and answer.exception.message
        self.open_session()

    def open_session(self) -> None:
        """Opens what a sender needs, behind its login."""
        self.send(self.frame(SessionInfo(SessionId(self.id, 1))) + self.frame(ProducerInfo(ProducerId(self.id, 1, 1))))

    def message(
        self, queue: str, body: bytes, wanted: bool = False, kind: type[OpenWireMessage] = ActiveMQBytesMessage,
        compressed: bool = False,
    ) -> bytes:  # fmt: skip
        """The frame of a persistent message."""
        producer = ProducerId(self.id, 1, 1)
        command = kind(
            producer_id=producer, destination=ActiveMQQueue(queue), persistent=True, priority=4, content=body,
            message_id=MessageId(None, producer, next(numbers), 0), timestamp=1, compressed=compressed,
        )  # fmt: skip
        return self.frame(command, wanted)

    def post(self, queue: str, body: bytes) -> Response:
        """Sends a message and returns the answer."""
        self.send(self.message(queue, body, True))
        found = self.until(Response)
        assert isinstance(found, Response)
        return found


def open_files(process: int) -> int:
    """The number of descriptors that a process has."""
    return len(os.listdir(f"/proc/{process}/fd"))


def resident_bytes(process: int) -> int:
    """The memory of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def core_frame(code: int, channel: int, payload: bytes) -> bytes:
    """A frame of CORE."""
    length = (len(payload) + FRAME_OVERHEAD_BYTES - 4).to_bytes(4, "big")
    return length + bytes((code & 0xFF,)) + channel.to_bytes(8, "big", signed=True) + payload

