"""OpenWire clients: some watch temporary destinations, as every JMS connection does, and one creates many at once."""

from __future__ import annotations

import selectors
import socket
import threading

from atalanta.wire.openwire.commands.connections import ConnectionInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQTempQueue, ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import ConnectionId, ConsumerId, SessionId
from atalanta.wire.openwire.commands.producers import DestinationInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.encoding.structure import DataStructure
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.wire_format import WireFormat
from bench.measure import BadRun

ANSWER_SECONDS = 120.0
ADVISORIES = "ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic"
PREFETCH = 1_000
POLL_SECONDS = 0.1


class OpenWireClient:
    """A connection that has logged in."""

    def __init__(self, port: int, user: str, password: str, name: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        options = WireFormatOptions(inactivity_ms=0)
        self._decoder = FrameDecoder(options)
        self._decoder.open()
        self._commands = 0
        self.id = f"ID:{name}-1:1"
        self.socket.sendall(WireFormat(HANDSHAKE).encode(info_of(options)))
        self._next()  # the broker's own info
        self.call(ConnectionInfo(ConnectionId(self.id), f"{self.id}:c", password, user))
        self.call(SessionInfo(SessionId(self.id, 1)))

    def encoded(self, command: ConnectionInfo | SessionInfo | ConsumerInfo | DestinationInfo) -> bytes:
        """The frame of a command that is to be answered."""
        self._commands += 1
        command.command_id = self._commands
        command.response_required = True
        return self._decoder.format.encode(command)

    def call(self, command: ConnectionInfo | SessionInfo | ConsumerInfo | DestinationInfo) -> None:
        """Sends a command and awaits its answer."""
        self.socket.sendall(self.encoded(command))
        self.await_answer(self._commands)

    def await_answer(self, command_id: int) -> None:
        """Reads until the command is answered."""
        while True:
            answer = self._next()
            if isinstance(answer, ExceptionResponse):
                raise BadRun(f"{self.id}: {answer.exception}")
            if isinstance(answer, Response) and answer.correlation_id == command_id:
                return

    def last_command(self) -> int:
        return self._commands

    def _next(self) -> DataStructure:
        while True:
            command = self._decoder.next()
            if command is not None:
                return command
            data = self.socket.recv(1 << 18)
            if not data:
                raise BadRun(f"{self.id}: the broker closed the connection")
            self._decoder.feed(data)


class TemporaryQueues:
    """A client that creates temporary queues, and watchers, which read all that they are told."""

    def __init__(self, port: int, user: str, password: str, watchers: int) -> None:
        self._creator = OpenWireClient(port, user, password, "creator")
        self._ended = threading.Event()
        self._watchers = [self._watcher(port, user, password, number) for number in range(watchers)]
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def create(self, count: int) -> None:
        """Creates queues in one batch, and awaits the answers."""
        creator = self._creator
        connection = ConnectionId(creator.id)
        batch = [
            creator.encoded(DestinationInfo(connection, ActiveMQTempQueue(f"{creator.id}:{number}")))
            for number in range(count)
        ]
        creator.socket.sendall(b"".join(batch))
        creator.await_answer(creator.last_command())

    def leave(self) -> None:
        """Ends the connection that owns the queues."""
        self._creator.socket.close()

    def close(self) -> None:
        """Ends the watchers."""
        self._ended.set()
        self._reader.join()
        for watcher in self._watchers:
            watcher.socket.close()

    def _watcher(self, port: int, user: str, password: str, number: int) -> OpenWireClient:
        client = OpenWireClient(port, user, password, f"watcher-{number}")
        consumer = ConsumerId(client.id, -1, 1)
        client.call(ConsumerInfo(consumer, destination=ActiveMQTopic(ADVISORIES), prefetch_size=PREFETCH))
        return client

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for watcher in self._watchers:
                selector.register(watcher.socket, selectors.EVENT_READ)
            while not self._ended.is_set():
                for key, _ in selector.select(POLL_SECONDS):
                    key.fileobj.recv(1 << 18)  # type: ignore[union-attr]
