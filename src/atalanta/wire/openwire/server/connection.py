"""The broker's side of an OpenWire connection: negotiation, login, commands, keep-alive.

Before login only the handshake is accepted. A connection may stay for hours between the negotiation and the login: it
is the reserve of a failover client (`backup=true`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.security.security import MANAGE
from atalanta.kernel.sessions.client import Client
from atalanta.wire.connection import Redirect
from atalanta.wire.login import LoginRequest
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.connections import (
    ConnectionControl,
    ConnectionInfo,
    KeepAliveInfo,
    RemoveInfo,
    ShutdownInfo,
    WireFormatInfo,
)
from atalanta.wire.openwire.commands.identifiers import BrokerId, ConnectionId
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.conversion.sent_message import Sender
from atalanta.wire.openwire.conversion.text_bounds import check_texts
from atalanta.wire.openwire.encoding.structure import Command, DataStructure
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.server.bridge.duplex_end import DuplexEnd, open_network
from atalanta.wire.openwire.server.bridge.neighbour import (
    Neighbour,
    introduced,
    may_bridge,
    same_neighbour,
)
from atalanta.wire.openwire.server.cluster_clients import can_be_told, scheme_of
from atalanta.wire.openwire.server.cluster_copies import comes_again
from atalanta.wire.openwire.server.redirect import OpenWireRedirect
from atalanta.wire.openwire.server.requests.commands import answer, remove_all
from atalanta.wire.openwire.server.requests.sends import held_bytes
from atalanta.wire.openwire.server.sessions.errors import (
    ClientIdError,
    bridge_throwable,
    throwable_of,
)
from atalanta.wire.openwire.server.sessions.output import OpenWireOutput
from atalanta.wire.openwire.server.sessions.session import OpenWireSession
from atalanta.wire.openwire.wire_format import WireFormat
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.openwire.server.node_clients import NodeClients
    from atalanta.wire.server import WireServer

RESERVES_MAX: Final = 500  # of one host; each has at most one frame of 64 KiB in part


class OpenWireConnection(OpenWireOutput):
    """An OpenWire client. `waiting`: a command that has no room yet. `processed`: the command that is processed.

    `node_clients` is what the clients of the node have in common. `login_command` is the login that is being answered.
    `fault_tolerant`: it is a failover client. `network`: the broker whose bridge it is; `duplex`: the bridge to that
    broker on the same connection.
    """

    def __init__(
        self,
        host: WireServer,
        node_clients: NodeClients,
        conn: int,
        remote: str,
        now: int,
        acceptor: AcceptorConfig | None,
        options: WireFormatOptions,
    ) -> None:
        super().__init__(host, conn, remote, now, acceptor, options)
        self.node_clients = node_clients
        self.options = options
        self.client.protocol = "OPENWIRE"
        self.client.implementation = "OpenWireConnection"
        self.session: OpenWireSession | None = None
        self.login_command: ConnectionInfo | None = None
        self.waiting: Command | None = None
        self.processed: Command | None = None
        self.fault_tolerant: bool = False
        self.network: Neighbour | None = None
        self.duplex: DuplexEnd | None = None
        self.closed_in_order: bool = False
        self.id_asked_for: bool = False  # whether the client id is free
        self.ttl_ns: int = -1
        self.pending_redirect: OpenWireRedirect | None = None
        self._write(WireFormat(HANDSHAKE).encode(info_of(options)))

    # -- bytes in -------------------------------------------------------------------------------
    def feed(self, now: int, data: bytes) -> None:
        self.last_seen = now
        if self.end_reason:
            return
        if self.holds > 0 or self.held:  # released, but `resume` comes first
            self.held.append(data)
            return
        self.decoder.feed(data)
        self.take_up(now)
        self.count_unfinished()

    def drop_unfinished(self) -> None:
        self.decoder.drop()
        self.waiting = self.processed = None
        if self.session is not None:
            self.session.waiting.clear()
            self.session.end_stop()

    def unfinished_bytes(self) -> int:
        waiting, session = self.waiting, self.session
        size = self.decoder.kept_bytes()
        if session is not None:
            size += session.waiting.bytes
        if isinstance(waiting, OpenWireMessage):
            size += held_bytes(waiting)
            if session is not None and session.inflation is not None:
                size += session.inflation.inflater.size
        return size

    def decode_next(self, data: bytes) -> None:
        self.decoder.feed(data)

    def command_name(self) -> str:
        return "" if self.processed is None else self.processed.__class__.__name__

    def take_up(self, now: int) -> None:
        """Processes complete commands until one must wait."""
        current = self.host.broker.command
        while self.holds == 0 and not self.gone and not self.end_reason:
            current.begin()
            command = self.waiting
            self.waiting = None
            self.processed = command
            if command is None:
                found = self._next(now)
                if found is None:
                    return
                if not isinstance(found, Command):
                    continue
                command = found
                self.processed = found
            try:
                self._process(now, command)
            except BrokerError as error:
                self.refuse(command.command_id, command.response_required, error)
        if self.pending_redirect is not None:
            self.pending_redirect.mark_received()

    def _next(self, now: int) -> DataStructure | None:
        """Returns the next command. A WireFormatInfo is answered here."""
        found = self.decoder.next()
        if isinstance(found, WireFormatInfo):
            self._negotiated(now)
        return found

    def refuse(self, command_id: int, wanted: bool, error: BrokerError) -> None:
        if wanted:
            throwable = throwable_of(error) if self.network is None else bridge_throwable(error)
            self.respond_error(command_id, throwable)
        else:
            self.report(error)

    def go_on(self, now: int) -> None:
        session = self.session
        if session is not None and not self.gone and not self.end_reason:
            session.go_on(now)

    def _negotiated(self, now: int) -> None:
        """Sends BrokerInfo, and begins the signs of life that both sides promise."""
        agreed = self.decoder.format
        self.ttl_ns = agreed.options.ttl_ns()
        self.keep_alive = self.node_clients.begin_keep_alive(now, self.host.wire, self.conn, agreed)
        broker = self.host.broker
        # Other brokers are told after the login.
        local, acceptor = self.client.local, self.acceptor
        peers = self.node_clients.peers
        url = f"tcp://{local}" if acceptor is None else peers.introduction(acceptor, local)
        self.answer(BrokerInfo(BrokerId(broker.node_id), url, [], broker.config.name, connection_id=self.conn))

    # -- commands -------------------------------------------------------------------------------
    def _process(self, now: int, command: Command) -> None:
        session = self.session
        if isinstance(command, ShutdownInfo):
            self.end("the client disconnected")
        elif isinstance(command, RemoveInfo) and isinstance(command.object_id, ConnectionId):
            if session is not None and session.waiting.lanes:  # the client believes that it has sent them
                session.stop_input()
                self.waiting = command
            else:
                self._close_in_order(now, command)
        elif session is not None:
            if isinstance(command, ConnectionInfo):
                if not self.closed_in_order:
                    raise ProtocolError("a second ConnectionInfo")
                self._begin_again(now)
                self._connect(now, command)
                return
            if self.closed_in_order:
                return  # the client closes: nothing else has an effect
            redirect = self.pending_redirect
            if redirect is not None and redirect.sent_at and command.response_required:
                broker = self.host.broker
                broker.trace.count("commands_after_redirect_undone")
                return  # the client repeats it at the other node
            if self.network is not None and isinstance(command, OpenWireMessage):
                if comes_again(command, self.node_clients.peers):
                    if command.response_required:
                        self.respond(command.command_id)
                    return
            if self.duplex is not None and self.duplex.takes(now, command):
                return
            if not answer(session, now, command):
                self.waiting = command
                session.count_waiting()
        elif isinstance(command, ConnectionInfo):
            self._connect(now, command)
        elif isinstance(command, ConnectionControl):
            self.fault_tolerant = self.fault_tolerant or command.fault_tolerant
            if command.response_required:
                self.respond(command.command_id)
        elif isinstance(command, KeepAliveInfo):
            if command.response_required:
                self.answer(KeepAliveInfo(command.command_id))
        elif isinstance(command, BrokerInfo):
            broker = self.host.broker
            self.network = introduced(self.network, command, broker.node_id, broker.config.name)
            if command.response_required:
                self.respond(command.command_id)
        else:
            raise ProtocolError(f"{command.__class__.__name__} before ConnectionInfo")

    def _close_in_order(self, now: int, command: RemoveInfo) -> None:
        """Processes the removal of the connection: its answer comes when everything is on disk."""
        session = self.session
        if session is None:
            raise ProtocolError("RemoveInfo before ConnectionInfo")
        if not self.closed_in_order:
            self.closed_in_order = True
            token = session.answers.token_for(command)
            remove_all(session, now, command.last_delivered_sequence_id)
            session.leave(now)
            session.kernel.close(now, False)
            self._end_bridge(now)
            if token != SILENT:
                session.done_when_durable(token)

    def _begin_again(self, now: int) -> None:
        """Frees what the client had, which logs in once more: a pool has cleaned its connection up."""
        former = self.client
        former.close(now, self.host.broker.session_services, False)
        self._free_client_id(now)
        self.client = Client(self.conn, former.remote)
        self.client.local, self.client.certificate = former.local, former.certificate
        self.client.protocol, self.client.implementation = former.protocol, former.implementation
        self.session = None
        self.closed_in_order = self.id_asked_for = self.authenticated = False

    def _free_client_id(self, now: int) -> None:
        client_id = self.client.client_id
        if client_id is None:
            return
        if self.node_clients.clients.get(client_id) is self:
            del self.node_clients.clients[client_id]
        self.node_clients.held_ids.freed(now, client_id)

    # -- login ----------------------------------------------------------------------------------
    def _connect(self, now: int, command: ConnectionInfo) -> None:
        """Processes ConnectionInfo. Input is held until the login is answered."""
        if self.login_command is not None:
            raise ProtocolError("a second ConnectionInfo")
        if command.connection_id is None:
            raise ProtocolError("ConnectionInfo without ConnectionId")
        self.login_command = command
        self.fault_tolerant = self.fault_tolerant or command.fault_tolerant
        self.hold_input()
        self.log_in(now, LoginRequest(command.user_name, command.password, command.client_id))

    def check_login(self, request: LoginRequest) -> None:
        super().check_login(request)
        if not request.client_id:
            raise ClientIdError("ConnectionInfo without a client id")
        if self.login_command is not None and self.login_command.connection_id is not None:
            check_texts(self.login_command.connection_id)

    def may_open(self, now: int, request: LoginRequest) -> bool:
        """Asks, once, whether a client that waits for room is still there, if this one has the same client id."""
        other = self.node_clients.clients.get(request.client_id or "")
        if self.id_asked_for or not isinstance(other, OpenWireConnection):
            return True
        if other.peer_gone or other.end_reason or not other.waits_for_room():
            return True
        self.id_asked_for = True
        other.send_sign_of_life()
        self.node_clients.held_ids.wait(now, request.client_id or "", self)
        return False

    def open_session(self, now: int, request: LoginRequest, identity: Identity) -> None:
        command = self.login_command
        client_id = request.client_id
        assert command is not None and command.connection_id is not None and client_id is not None
        broker = self.host.broker
        self.check_admission(identity)
        self.came_back = command.failover_reconnect
        self.client.client_id = client_id
        self.client.connection_id = command.connection_id.value or ""
        self._take_client_id(client_id, identity, self.came_back)
        broker.clients.count_login()
        self.login_command = None
        self.authenticated = True
        self.host.wire.logged_in(self.conn)
        self.decoder.open()
        scheduler = self.host.scheduler_of(self.acceptor)
        sender = Sender(client_id, self.options.frame_bytes_max, scheduler, broker.trace)
        if self.network is not None:
            sender.become_bridge(identity.user, may_bridge(broker.session_services.permissions, identity))
        else:
            self.decoder.compare_frames()
            if self.fault_tolerant:
                sender.may_repeat(identity.user)
        others = self.node_clients
        session = OpenWireSession(
            self,
            command.connection_id,
            sender,
            others.advisories,
            others.pulls,
            others.wildcard_queues,
            others.correlations,
            others.inflations,
        )
        kernel = self.new_session(session, identity)
        session.attach(kernel)
        self.session = session
        if self.fault_tolerant:
            target = others.sent_to(now, client_id)  # it has come back if it could be there
            self.came_from = broker.node_id if target is not None and self.can_reach(target) else ""
        if command.manageable:  # told before the Response: the client may go at once
            others.cluster_clients.greet(now, self, self.fault_tolerant)
        if command.response_required:
            self.respond(command.command_id)
        kernel.set_blocked(self.blocked)
        if self.came_back:
            others.returned.add(now, kernel)
        else:
            kernel.start()
        advisories = others.advisories
        advisories.connections.add(command.connection_id, self.client, identity.user)
        if self.network is not None:
            # The user of a neighbour that clients are told of must be one that manages: it may name any address.
            manages = broker.session_services.permissions.allows(identity, MANAGE, broker.config.management_address)
            peers = others.peers if manages else None
            self.duplex = open_network(self, others.bridges, self.network, now, peers, identity)
            others.peers.listen(self.conn, self.decoder.theirs, self.tell)
        self.release_input()

    def _take_client_id(self, client_id: str, identity: Identity, reconnects: bool) -> None:
        """Registers the client id.

        One that is in use is refused, unless its user comes back after a failover, or with allowLinkStealing. The
        bridge of a broker comes back without saying so. The id of a client that has hung up is free.
        """
        other = self.node_clients.clients.get(client_id)
        if isinstance(other, OpenWireConnection) and not other.gone and not other.end_reason:
            acceptor = self.acceptor
            steals = acceptor is not None and acceptor.options(OpenWireAcceptor).allow_link_stealing
            steals = steals or same_neighbour(self.network, other.network)
            if not other.peer_gone and (not (reconnects or steals) or not other.belongs_to(identity)):
                name = self.node_clients.broker_name
                raise ClientIdError(f"Broker: {name} - Client: {client_id} already connected from {other.peer()}")
            other.replace()
        self.node_clients.clients[client_id] = self

    def belongs_to(self, identity: Identity) -> bool:
        """Returns True if the client has logged in as that user."""
        session = self.session
        return session is not None and session.kernel.identity.user == identity.user

    def replace(self) -> None:
        """Ends the former connection of a client that came back: it creates its temporary destinations again."""
        self.end("its client has reconnected")
        broker = self.host.broker
        self._leave(broker.now)
        self.client.delete_queues(broker.now, broker.queue_registry)

    def _leave(self, now: int) -> None:
        """Ends the session, and the bridge to the client's broker."""
        session = self.session
        if session is not None:
            session.leave(now)
            session.kernel.close(now, True)
        self._end_bridge(now)

    def _end_bridge(self, now: int) -> None:
        if self.duplex is not None:
            self.duplex.close(now)
            self.duplex = None
        self.node_clients.peers.end(self.conn)

    def refuse_login(self, error: BrokerError) -> None:
        command = self.login_command
        self.login_command = None
        if command is not None and command.response_required:
            self.respond_error(command.command_id, throwable_of(error))
        self.end(error.text)

    def waits_for_room(self) -> bool:
        session = self.session
        return self.waiting is not None or (session is not None and len(session.waiting.lanes) > 0)

    def send_sign_of_life(self) -> None:
        """Sends what the system of a client that has gone refuses: its end may be behind bytes that are not read."""
        self.send(KeepAliveInfo())

    def on_blocked(self, now: int, blocked: bool) -> None:
        super().on_blocked(now, blocked)
        if self.duplex is not None:
            self.duplex.bridge.on_blocked(now, blocked)

    def block_deliveries(self, blocked: bool) -> None:
        if self.session is not None:
            self.session.kernel.set_blocked(blocked)

    # -- other nodes ----------------------------------------------------------------------------
    def can_move(self) -> str | None:
        acceptor, session = self.acceptor, self.session
        if not self.fault_tolerant or not can_be_told(self):
            return "has no failover: in its URL"
        if acceptor is None or not acceptor.options(OpenWireAcceptor).rebalance_cluster_clients:
            return "uses an acceptor without rebalanceClusterClients"
        return "has temporary destinations" if session is not None and session.temporary else None

    def uri_of_node(self, node_id: str) -> str | None:
        peers = self.node_clients.peers
        members = peers.members
        member = members.of_node(self, node_id) or peers.neighbours.get(node_id)
        if member is None or not self.node_clients.cluster_clients.may_be_told(self, member):
            return None
        return member.uri_for(scheme_of(self))

    def can_reach(self, node_id: str) -> bool:
        return self.uri_of_node(node_id) is not None

    def uses_connectors(self) -> bool:
        return False

    def begin_redirect(self, now: int, target_node: str) -> Redirect:
        redirect = OpenWireRedirect(self, now, target_node, self.uri_of_node(target_node) or "")
        self.pending_redirect = redirect
        redirect.begin()
        return redirect

    def current_redirect(self) -> Redirect | None:
        return self.pending_redirect

    def end_redirect(self, now: int) -> None:
        self.pending_redirect = None
        self.show_blocked()
        self.host.broker.wake(now)

    def send_away(self, now: int, node_id: str, uri: str) -> None:
        self.node_clients.cluster_clients.send_to(now, self, uri)
        self.node_clients.sent_away(now, self, node_id)

    def is_busy(self) -> bool:
        answers = self.session is not None and len(self.session.answers.waiting) > 0
        return answers or self.holds > 0 or len(self.held) > 0 or self.blocked or self.waiting is not None

    def flush(self, now: int) -> None:
        if self.pending_redirect is not None and len(self.out):
            self.pending_redirect.answered(now)
        super().flush(now)
        if self.duplex is not None:
            self.duplex.bridge.flush(now)

    # -- life -----------------------------------------------------------------------------------
    def stays_without_login(self, now: int) -> bool:
        """Returns True for a reserve of a failover client: it has negotiated, and logs in when it is needed."""
        return not self.authenticated and self.decoder.theirs is not None and self.handshake_overdue(now)

    def reserves_max(self) -> int:
        return RESERVES_MAX

    def check_alive(self, now: int) -> bool:
        if self.holds > 0:
            if self.decoder.theirs is not None and not self.end_reason:
                self.send_sign_of_life()
            if self.authenticated:
                return True  # its input is held
        return self.is_in_time(now, self.ttl_ns, self.decoder.theirs is None)

    def stop(self, now: int) -> None:
        """Closes the connection: failover clients reconnect, to another broker of their list or to this one."""
        if self.decoder.theirs is not None and not self.gone and not self.end_reason:
            self.node_clients.cluster_clients.farewell(self)
            self.tell(ShutdownInfo())
        self.end("the node stops")

    def refuse_requests(self, notified: bool) -> None:
        """Ends the connection: OpenWire has no refusal after which a client goes elsewhere."""
        self.stop(0)

    def closed(self, now: int, why: str) -> None:
        if self.gone:
            return
        self.gone = True
        self.forget_unfinished()
        self.node_clients.cluster_clients.forget(self.conn)
        if self.keep_alive is not None:
            self.node_clients.keep_alives.remove(self.keep_alive)
        self._leave(now)
        self.client.close(now, self.host.broker.session_services, True)
        self._free_client_id(now)
