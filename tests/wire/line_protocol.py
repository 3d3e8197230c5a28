"""A small protocol of lines, whole: what docs/internals/protocols/README.md says that a new one implements.

    LOGIN user password          OK | NO why, then the end
    SEND queue text              OK once it is on disk | NO why, then the end
    READ queue                   OK, then MESSAGE id text; at most WINDOW without an acknowledgement
    ACK id                       OK once it is on disk
"""

from __future__ import annotations

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.ports import Timers
from atalanta.kernel.queue.consumer import QueueConsumer
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.security.security import Identity
from atalanta.kernel.sessions.subscription_queue import subscribed_queue
from atalanta.message.codec import text_body
from atalanta.message.message import TEXT, TEXT_LENGTHS_BYTES, Message
from atalanta.message.properties import Byte
from atalanta.wire.client_output import ClientOutput
from atalanta.wire.connection import DEFAULT_TTL_NS, ClientConnection
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.login import LoginRequest
from atalanta.wire.protocol import MORE, NO, YES, Peer, Protocol
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.sender_control import SenderControl
from atalanta.wire.server import WireServer

BEGINNING = b"LOGIN "
LINE_BYTES_MAX = 4_096
WINDOW = 2
READER = 1  # the only consumer
PRIORITY = 4


class LineProtocol(Protocol):
    """The protocol of one node."""

    name = "LINES"

    def __init__(self, host: WireServer, timers: Timers) -> None:
        self.host = host

    def recognises(self, first: bytes) -> int:
        if first.startswith(BEGINNING):
            return YES
        return MORE if BEGINNING.startswith(first) else NO

    def open(self, conn: int, peer: Peer, now: int, acceptor: AcceptorConfig | None) -> ClientConnection:
        connection = LineConnection(self.host, conn, peer.remote, now, acceptor)
        connection.describe(peer.server_name, peer.certificate)
        return connection


class LineConnection(ClientOutput):
    """A client: bytes in, lines out. `waiting` has no room at its address yet."""

    def __init__(self, host: WireServer, conn: int, remote: str, now: int, acceptor: AcceptorConfig | None) -> None:
        super().__init__(host, conn, remote, now, acceptor)
        self.client.protocol = LineProtocol.name
        self.kept = b""
        self.waiting = ""
        self.session: LineSession | None = None
        self.end_reason = ""

    # -- bytes in -------------------------------------------------------------------------------
    def feed(self, now: int, data: bytes) -> None:
        self.last_seen = now
        if self.holds > 0 or self.held:  # `resume` takes it
            self.held.append(data)
        elif not self.end_reason:
            self.decode_next(data)
            self.take_up(now)
            self.count_unfinished()

    def decode_next(self, data: bytes) -> None:
        self.kept += data

    def take_up(self, now: int) -> None:
        while self.holds == 0 and not self.gone and not self.end_reason:
            self.host.broker.command.begin()
            line, self.waiting = self.waiting, ""
            if not line:
                if len(self.kept) > LINE_BYTES_MAX:
                    raise ProtocolError(f"a line of more than {LINE_BYTES_MAX} bytes")
                found, end, rest = self.kept.partition(b"\n")
                if not end:
                    return
                line, self.kept = found.decode("utf-8", "replace"), rest
            try:
                self._process(now, line)
            except BrokerError as error:
                self.refuse(error.text)

    def _process(self, now: int, line: str) -> None:
        command, _, rest = line.partition(" ")
        session = self.session
        if session is not None:
            if not session.request(now, command, rest):
                self.waiting = line
        elif command == "LOGIN":
            user, _, password = rest.partition(" ")
            self.hold_input()
            self.log_in(now, LoginRequest(user, password, None))
        else:
            raise ProtocolError(f"{command} before LOGIN")

    def unfinished_bytes(self) -> int:
        return len(self.kept) + len(self.waiting)

    def drop_unfinished(self) -> None:
        self.kept = b""
        self.waiting = ""

    def waits_for_room(self) -> bool:
        return self.waiting != ""

    # -- login ----------------------------------------------------------------------------------
    def open_session(self, now: int, request: LoginRequest, identity: Identity) -> None:
        self.check_admission(identity)
        self.host.broker.clients.count_login()
        self.authenticated = True
        self.host.wire.logged_in(self.conn)
        self.session = LineSession(self)
        kernel = self.new_session(self.session, identity)
        self.session.attach(kernel)
        kernel.set_blocked(self.blocked)
        kernel.start()
        self.line("OK")
        self.release_input()

    def refuse_login(self, error: BrokerError) -> None:
        self.refuse(error.text)

    # -- lines out ------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.flush_later()
        self.out.write(text.encode() + b"\n")

    def refuse(self, why: str) -> None:
        self.line(f"NO {why}")
        self.end(why)

    def end(self, why: str) -> None:
        if not self.end_reason:
            self.end_reason = why
            self.show_blocked()
            self.host.close(self.conn, why)

    def holds_deliveries(self) -> bool:
        return self.end_reason != ""

    def block_deliveries(self, blocked: bool) -> None:
        if self.session is not None:
            self.session.kernel.set_blocked(blocked)

    # -- life -----------------------------------------------------------------------------------
    def check_alive(self, now: int) -> bool:
        return self.holds > 0 or self.is_in_time(now, DEFAULT_TTL_NS, not self.authenticated)

    def stop(self, now: int) -> None:
        self.refuse("the node stops")

    def refuse_requests(self, notified: bool) -> None:
        self.stop(0)

    def closed(self, now: int, why: str) -> None:
        if self.gone:
            return
        self.gone = True
        self.forget_unfinished()
        if self.session is not None:
            self.session.kernel.close(now, True)
        self.client.close(now, self.host.broker.session_services, True)


class LineSession(SenderControl):
    """The kernel's view of the client. A token of the kernel is the number of the request that gets the answer."""

    def __init__(self, connection: LineConnection) -> None:
        super().__init__(connection)
        self.connection = connection
        self.last_token = 0

    def request(self, now: int, command: str, rest: str) -> bool:
        """Processes a line. Returns False if it has to wait for room."""
        kernel = self.kernel
        name, _, text = rest.partition(" ")
        if command == "SEND":
            body = text_body(text)
            if not self.may_send(name, len(body)):
                self.stop_input()
                return False
            message = Message.create(name, body, TEXT, True, now // 1_000_000, PRIORITY)
            message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
            kernel.send(now, message, self.token())
        elif command == "READ":
            queue = subscribed_queue(kernel, now, name, "", ANYCAST, None)
            kernel.create_consumer(now, READER, queue.name, None, False, PRIORITY)
            self.done(self.token())
            kernel.add_credits(READER, WINDOW)
        elif command == "ACK":
            kernel.acknowledge(now, READER, int(rest), True, self.token())
            kernel.add_credits(READER, 1)
        else:
            raise ProtocolError(f"{command}: not known")
        return True

    def token(self) -> int:
        self.last_token += 1
        return self.last_token

    def done(self, token: int) -> None:
        if not self.connection.gone:
            self.connection.line("OK")

    def failed(self, token: int, error: BrokerError) -> None:
        self.connection.refuse(error.text)

    def cut_off(self, why: str) -> None:
        self.connection.refuse(why)

    def deliver(self, consumer: QueueConsumer, reference: Reference) -> int:
        message = reference.message
        if message.kind != TEXT or message.large is not None:
            self.connection.set_aside(self.kernel, consumer, int(message.id), "it is no short text")
            return 0
        text = message.body[TEXT_LENGTHS_BYTES:].decode("utf-16-le")
        self.connection.line(f"MESSAGE {message.id} {text}")
        self.connection.delivered()
        return 1

    def drained(self, consumer: QueueConsumer, token: int) -> None:
        """Does nothing: no client of lines drains."""

    def consumer_gone(self, consumer: QueueConsumer, why: str) -> None:
        self.kernel.consumers.pop(consumer.id, None)
        self.connection.refuse(f"the queue has ended: {why}")

    def ended_by_operator(self, now: int) -> None:
        self.kernel.close(now, True)
        self.connection.refuse("an operator has closed the session")
