"""The broker's side of a STOMP connection: login, frames, heart-beats.

Before login only CONNECT or STOMP is accepted. After an ERROR frame the connection closes, as the specification wants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.routing.virtual_topics import virtual_topics
from atalanta.wire.connection import DEFAULT_TTL_NS
from atalanta.wire.heart_beats import Beat, HeartBeats
from atalanta.wire.login import LoginRequest
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.acceptor import StompAcceptor
from atalanta.wire.stomp.decoder import FrameDecoder
from atalanta.wire.stomp.destination import Destinations
from atalanta.wire.stomp.frame import V10, VERSION_NAMES, VERSIONS, Frame
from atalanta.wire.stomp.heart_beat import HeartBeat
from atalanta.wire.stomp.output import StompOutput
from atalanta.wire.stomp.requests import answer
from atalanta.wire.stomp.session import StompSession
from atalanta.wire.web_socket import WebSocket, framed

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.server import WireServer
    from atalanta.wire.wildcard_queues import WildcardQueues

SERVER: Final = "Atalanta"
LINE_END: Final = b"\n"
NO_VERSION: Final = "the client offers none of the versions 1.0, 1.1 and 1.2"


class StompConnection(StompOutput):
    """A STOMP client. `waiting`: a frame that has no room yet. `connect_frame` is the login that is being answered.
    """

    def __init__(
        self,
        host: WireServer,
        beats: HeartBeats,
        wildcard_queues: WildcardQueues,
        conn: int,
        remote: str,
        now: int,
        acceptor: AcceptorConfig | None,
    ) -> None:
        super().__init__(host, conn, remote, now, acceptor)
        self.beats = beats
        self.wildcard_queues = wildcard_queues
        self.client.protocol = "STOMP"
        self.client.implementation = "StompConnection"
        self.options = StompAcceptor() if acceptor is None else acceptor.options(StompAcceptor)
        self.decoder = FrameDecoder(self.options.classic, self.options.body_bytes_max)
        self.session: StompSession | None = None
        self.connect_frame: Frame | None = None
        self.waiting: Frame | None = None
        self.ttl_ns: int = DEFAULT_TTL_NS

    # -- bytes in -------------------------------------------------------------------------------
    def feed(self, now: int, data: bytes) -> None:
        self.last_seen = now
        socket = self.web_socket
        if socket is None:
            self._take(now, data)
            return
        carried = socket.receive(data)
        answers = socket.take_answers()
        if answers:
            self.host.wire.write(self.conn, answers)
        self._take(now, carried)
        if socket.closed:
            self.end("the peer closed its WebSocket")

    def use_web_socket(self, now: int, socket: WebSocket, carried: bytes) -> None:
        self.web_socket = socket
        self.last_seen = now
        self._take(now, carried)

    def _take(self, now: int, data: bytes) -> None:
        """Processes the bytes of the protocol, now or when the input is released."""
        if self.end_reason:
            return
        if self.holds > 0 or self.held:  # released, but `resume` comes first
            self.held.append(data)
            return
        self.decoder.begin(data)
        self.take_up(now)
        self.count_unfinished()

    def drop_unfinished(self) -> None:
        self.decoder.drop()
        self.waiting = self.processed = None
        if self.session is not None:
            self.session.waiting.clear()
            self.session.end_stop()

    def unfinished_bytes(self) -> int:
        size = self.decoder.kept_bytes()
        if self.waiting is not None:
            size += len(self.waiting.body) + self.waiting.head_size()
        if self.session is not None:
            size += self.session.waiting.bytes
        return size

    def command_name(self) -> str:
        return "" if self.processed is None else self.processed.command

    def decode_next(self, data: bytes) -> None:
        self.decoder.begin(data)

    def take_up(self, now: int) -> None:
        """Processes complete frames until one must wait. After an error nothing more is read."""
        frame: Frame | None = None
        current = self.host.broker.command
        try:
            while self.holds == 0 and not self.gone and not self.end_reason:
                current.begin()
                frame = self.waiting
                self.waiting = self.processed = None
                if frame is None:
                    frame = self.decoder.step()
                self.processed = frame
                if frame is None:
                    return
                self._process(now, frame)
        except BrokerError as error:
            self.refuse(error.text, None if frame is None else frame.get("receipt"))
        except ProtocolError as broken:
            self.send_error(str(broken), self.decoder.receipt if frame is None else frame.get("receipt"))
            raise

    def go_on(self, now: int) -> None:
        session = self.session
        if session is not None and not self.gone and not self.end_reason:
            self.processed = None
            session.go_on(now)

    def _process(self, now: int, frame: Frame) -> None:
        session = self.session
        if session is not None:
            if not answer(session, now, frame):
                self.waiting = frame
                session.count_waiting()
        elif frame.command == "CONNECT" or frame.command == "STOMP":
            self._connect(now, frame)
        else:
            raise ProtocolError(f"{frame.command} before CONNECT")

    # -- login ----------------------------------------------------------------------------------
    def _connect(self, now: int, frame: Frame) -> None:
        """Processes CONNECT or STOMP. Input is held until the login is answered."""
        offered = frame.get("accept-version")
        if offered is not None:
            known = [VERSIONS.get(part.strip(), 0) for part in offered.split(",")]
            self.version = max(known)
            if self.version == 0:
                self.version = V10
                self.send_error(NO_VERSION, frame.get("receipt"))
                self.host.tell_refused(now, self.client.remote, NO_VERSION)
                self.end(NO_VERSION)
                return
        HeartBeat(frame.get("heart-beat"), -1, None)  # refused before the password is checked
        self.connect_frame = frame
        self.hold_input()
        self.log_in(now, LoginRequest(frame.get("login"), frame.get("passcode"), frame.get("client-id")))

    def open_session(self, now: int, request: LoginRequest, identity: Identity) -> None:
        frame = self.connect_frame
        assert frame is not None
        broker = self.host.broker
        self.check_admission(identity)
        broker.clients.count_login()
        self.connect_frame = None
        self.authenticated = True
        self.host.wire.logged_in(self.conn)
        self.decoder.admit(self.version)
        self.client.client_id = request.client_id
        topics = virtual_topics(broker.config.virtual_topic_forms) if self.options.classic else None
        names = Destinations(self.address_prefixes(), broker.address_registry.by_name, topics)
        session = StompSession(self, names, self.options, self.wildcard_queues)
        kernel = self.new_session(session, identity)
        session.attach(kernel)
        self.session = session
        self._send_connected(now, frame, kernel.name)
        kernel.set_blocked(self.blocked)
        kernel.start()
        self.release_input()

    def _send_connected(self, now: int, frame: Frame, session_name: str) -> None:
        config = self.host.broker.config
        agreed = HeartBeat(frame.get("heart-beat"), config.connection_ttl_override_ms, self.acceptor)
        self.ttl_ns = agreed.ttl_ms * 1_000_000 if agreed.ttl_ms >= 0 else -1
        if agreed.own_period_ms:
            data = LINE_END if self.web_socket is None else framed(LINE_END)
            self.heart_beat = Beat(self.host.wire, self.conn, now, agreed.own_period_ms * 1_000_000, data)
            self.beats.add(now, self.heart_beat)
        if self.options.classic:
            session_name = self.client.client_id or f"ID:{session_name}"
        headers = [("version", VERSION_NAMES[self.version]), ("session", session_name)]
        if not self.options.server_header_off:
            headers.append(("server", SERVER))
        request_id = frame.get("request-id")
        if request_id is not None:
            headers.append(("response-id", request_id))
        headers.append(("heart-beat", f"{agreed.own_period_ms},{agreed.wished_ms}"))
        self.send_bytes(self.answer_frame("CONNECTED", headers, b"", V10))  # without escapes in any version

    def refuse_login(self, error: BrokerError) -> None:
        frame = self.connect_frame
        self.connect_frame = None
        self.send_error(error.text, None if frame is None else frame.get("receipt"))
        self.end(error.text)

    def waits_for_room(self) -> bool:
        return self.waiting is not None or (self.session is not None and len(self.session.waiting.lanes) > 0)

    def block_deliveries(self, blocked: bool) -> None:
        if self.session is not None:
            self.session.kernel.set_blocked(blocked)

    # -- life -----------------------------------------------------------------------------------
    def check_alive(self, now: int) -> bool:
        if self.holds > 0 and self.authenticated:
            # The system of a client that has gone refuses it: its end may be behind bytes that are not read.
            if self.stream is None and not self.end_reason:
                self.writer().write(LINE_END)
            return True  # its input is held
        return self.is_in_time(now, self.ttl_ns, not self.authenticated)

    def stop(self, now: int) -> None:
        """Sends ERROR, with the successor of a node that leaves, and closes the connection."""
        successor = self.host.successor
        if successor is None or successor.transport is None:
            self.refuse("the node stops", None)
            return
        transport = successor.transport
        self.refuse(f"the node leaves: its successor is {transport.host}:{transport.get('port')}", None)

    def refuse_requests(self, notified: bool) -> None:
        """Ends the connection: STOMP has no refusal that leaves it open."""
        self.stop(0)

    def closed(self, now: int, why: str) -> None:
        if self.gone:
            return
        self.gone = True
        self.forget_unfinished()
        if self.heart_beat is not None:
            self.beats.remove(self.heart_beat)
        session = self.session
        if session is not None:
            session.leave()
            session.kernel.close(now, True)
        if self.stream is not None:
            self.stream.abort()
        self.client.close(now, self.host.broker.session_services, True)
