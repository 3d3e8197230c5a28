"""The connection of a network bridge to another broker: an OpenWire client that announces itself as a broker.

Follows startRemoteBridge and serviceRemoteCommand of DemandForwardingBridgeSupport (ActiveMQ Classic). With `duplex`
the other broker runs a bridge of its own over the same connection: its messages come as bare commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from atalanta.cluster.networks.duplex_input import DuplexInput, DuplexOwner
from atalanta.cluster.networks.hello import greeting, rules_of
from atalanta.kernel.security.security import Identity
from atalanta.wire.connection import TransportConnection
from atalanta.wire.openwire.commands.brokers import BrokerInfo, BrokerSubscriptionInfo
from atalanta.wire.openwire.commands.connections import (
    ConnectionControl,
    ConnectionError,
    ConnectionInfo,
    KeepAliveInfo,
    RemoveInfo,
    ShutdownInfo,
    WireFormatInfo,
)
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.identifiers import (
    BrokerId,
    ConnectionId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.commands.producers import ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.conversion.destination import is_advisory
from atalanta.wire.openwire.encoding.structure import EncodeError
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.server.bridge.advisory_consumer import AdvisoryConsumer
from atalanta.wire.openwire.server.bridge.demand_bridge import BridgePeer, DemandBridge
from atalanta.wire.openwire.server.bridge.local_side import SESSION
from atalanta.wire.openwire.server.bridge.refusals import Refusals
from atalanta.wire.openwire.server.cluster_copies import comes_again
from atalanta.wire.openwire.wire_format import WireFormat

if TYPE_CHECKING:
    from atalanta.cluster.networks.config import NetworkConnectorConfig
    from atalanta.wire.heart_beats import Beat
    from atalanta.wire.openwire.encoding.structure import Command, DataStructure
    from atalanta.wire.openwire.server.node_clients import NodeClients
    from atalanta.wire.server import WireServer

OPEN_TIMEOUT_NS: Final = 30_000_000_000
CONNECTOR_USER: Final = "network connector"  # it acts for the operator, who has written the connector: no rights needed
BATCH_BYTES_MAX: Final = 1 << 20  # messages of one batch of inputs


class PeerOutput(BridgePeer):
    """The link as the bridge of messages uses it."""

    def __init__(self, link: NetworkLink) -> None:
        self.link = link

    def send_to_peer(self, command: Command) -> None:
        self.link.write(command)

    def take_command_id(self) -> int:
        return self.link.take_command_id()

    def is_full(self) -> bool:
        return len(self.link.out) > BATCH_BYTES_MAX

    def flush_later(self) -> None:
        self.link.flush_later()

    def bridge_failed(self, why: str) -> None:
        self.link.fail(why)

    def tell(self, event: str, why: str) -> None:
        self.link.tell(event, why)


class LinkOwner:
    """The bridge of a connector, as its link uses it."""

    def __init__(self, host: WireServer, node_clients: NodeClients, config: NetworkConnectorConfig) -> None:
        self.host = host
        self.node_clients = node_clients
        self.config = config
        self.refusals = Refusals()

    def on_connected(self, now: int, link: NetworkLink) -> None:
        """Handles that the other broker has taken the login."""
        raise NotImplementedError

    def on_lost(self, now: int, link: NetworkLink, why: str) -> None:
        """Handles the end of the connection."""
        raise NotImplementedError

    def heard(self, command: ConnectionControl) -> None:
        """Handles what the other broker tells of its clients."""
        raise NotImplementedError

    def leads_home(self, now: int) -> None:
        """Handles that the other broker is this one."""
        raise NotImplementedError

    def tell(self, event: str, why: str) -> None:
        """Reports an event to the operator."""
        raise NotImplementedError


class NetworkLink(TransportConnection, DuplexOwner):
    """The link. `outgoing` exists once the other broker has taken the login, `incoming` with `duplex`.

    `connected_at` is a time (ns), 0 before. `why` is the reason of an end that this side has decided.
    """

    def __init__(self, bridge: LinkOwner, conn: int, now: int, options: WireFormatOptions) -> None:
        self.bridge = bridge
        self.host = bridge.host
        broker = bridge.host.broker
        self.own_name: str = broker.config.name
        self.conn = conn
        self.opened: int = now
        self.last_seen: int = now
        self.connected_at: int = 0
        self.ttl_ns: int = -1
        self.why: str = ""
        self.gone: bool = False
        self.dirty: bool = False
        self.out: BytesWriter = BytesWriter()
        self.decoder = FrameDecoder(options)
        self.decoder.open()
        self.keep_alive: Beat | None = None
        self.remote: BrokerInfo | None = None
        self.outgoing: DemandBridge | None = None
        self.incoming: DuplexInput | None = None
        self.waiting: Command | None = None
        self.last_command: int = 0
        config = bridge.config
        prefetch = config.advisory_prefetch_size or config.prefetch_size
        self.advisories = AdvisoryConsumer(self._id(), prefetch, config.advisory_ack_percentage)
        self._append(WireFormat(HANDSHAKE).encode(info_of(options)))

    # -- bytes ----------------------------------------------------------------------------------
    def feed(self, now: int, data: bytes) -> None:
        self.last_seen = now
        self.decoder.feed(data)
        self._take_up(now)

    def resume(self, now: int) -> None:
        self._take_up(now)
        if not self._held():
            self.host.wire.resume(self.conn)

    def hung_up(self, now: int) -> bool:
        """Ends the link: the input is held while an address here is full, and that may last. The bridge dials again,
        and the other broker sends again what has no answer."""
        return True

    def _held(self) -> bool:
        return self.incoming is not None and self.incoming.holds

    def _take_up(self, now: int) -> None:
        """Processes complete commands until one must wait."""
        command = self.host.broker.command
        while not self._held() and not self.gone and not self.why:
            command.begin()
            found: DataStructure | None = self.waiting
            self.waiting = None
            if found is None:
                found = self.decoder.next()
            if found is None:
                return
            command.begin_change()
            self._process(now, found)

    def write(self, command: Command) -> None:
        """Writes a command. EncodeError: nothing was written. `answer` ends the link then, a message is set aside."""
        if not self.gone:
            self._append(self.decoder.format.encode(command))

    def answer(self, command: Command) -> None:
        """Writes a command of the link itself; the link ends if it cannot be encoded for the other broker."""
        try:
            self.write(command)
        except EncodeError as error:
            broker = self.host.broker
            name = command.__class__.__name__
            self.fail(broker.failures.report(broker.now, "OPENWIRE", name, self.remote_name(), error))

    def _append(self, frame: bytes) -> None:
        self.flush_later()
        self.out.write(frame)

    def flush_later(self) -> None:
        """Asks for a flush at the end of this batch of inputs."""
        if not self.dirty:
            self.dirty = True
            self.host.dirty.append(self.conn)

    def flush(self, now: int) -> None:
        self.dirty = False
        if len(self.out):
            data = self.out.getvalue()
            self.out.truncate(0)
            self.host.wire.write(self.conn, data)
            if self.keep_alive is not None:
                self.keep_alive.last_written = now
        if self.outgoing is not None:
            self.outgoing.flush(now)

    def take_command_id(self) -> int:
        """Returns the number of the next command."""
        self.last_command += 1
        return self.last_command

    def pause(self) -> None:
        """Stops reading: an address here is full."""
        self.host.wire.pause(self.conn)

    def resume_later(self) -> None:
        """Lets the reading go on behind this batch of inputs."""
        self.host.resumed.append(self.conn)

    # -- commands of the other broker -----------------------------------------------------------
    def _process(self, now: int, command: DataStructure) -> None:
        outgoing = self.outgoing
        if isinstance(command, WireFormatInfo):
            self._negotiated(now)
        elif isinstance(command, Response):
            if outgoing is None or not outgoing.on_response(now, command):
                self._answered(now, command)
        elif isinstance(command, BrokerInfo):
            if self.remote is None:
                self._meet(now, command)
        elif isinstance(command, ConnectionError):
            cause = command.exception
            self.fail(f"the other broker reports an error: {'' if cause is None else cause.message}")
        elif isinstance(command, ShutdownInfo):
            self.fail("the other broker stops")
        elif isinstance(command, KeepAliveInfo):
            if command.response_required:
                self.answer(KeepAliveInfo(command.command_id))
        elif isinstance(command, ConnectionControl):
            self.bridge.heard(command)
        elif outgoing is None:
            return
        elif isinstance(command, MessageDispatch):
            if command.message is not None:
                self._advised(now, outgoing, command.message)
        elif isinstance(command, BrokerSubscriptionInfo):
            outgoing.on_subscriptions(now, command)
        elif self.incoming is not None:
            self._process_duplex(now, outgoing, self.incoming, command)

    def _process_duplex(
        self, now: int, outgoing: DemandBridge, incoming: DuplexInput, command: DataStructure
    ) -> None:
        """Processes what the bridge of the other broker sends."""
        self._connected(now)
        node_clients = self.bridge.node_clients
        if isinstance(command, OpenWireMessage):
            destination = command.destination
            if destination is not None and is_advisory(destination):
                self._advised(now, outgoing, command)
            elif comes_again(command, node_clients.peers):
                if command.response_required:
                    self.answer(Response(command.command_id))
            elif incoming.give(now, command):
                incoming.count()
            else:
                self.waiting = command
        elif isinstance(command, (ConsumerInfo, RemoveInfo)):
            incoming.give(now, command)
        elif isinstance(command, (ConnectionInfo, SessionInfo, ProducerInfo)) and command.response_required:
            self.answer(Response(command.command_id))

    def _advised(self, now: int, bridge: DemandBridge, message: OpenWireMessage) -> None:
        """Handles an advisory, and acknowledges a part of the prefetch at once."""
        bridge.on_advisory(now, message.data_structure)
        acknowledgement = self.advisories.acknowledgement(message)
        if acknowledgement is not None:
            self.answer(acknowledgement)

    # -- opening --------------------------------------------------------------------------------
    def _id(self) -> str:
        return f"ID:{self.host.broker.node_id}-link{self.conn}:1"

    def _negotiated(self, now: int) -> None:
        agreed = self.decoder.format
        self.ttl_ns = agreed.options.ttl_ns()
        self.keep_alive = self.bridge.node_clients.begin_keep_alive(now, self.host.wire, self.conn, agreed)

    def _meet(self, now: int, remote: BrokerInfo) -> None:
        """Begins the bridge to the broker that has introduced itself."""
        identity = remote.broker_id
        if identity is None or not identity.value:
            self.fail("the other broker has no id")
            return
        self.remote = remote
        if identity.value == self.host.broker.node_id:
            self.bridge.leads_home(now)
            return
        config = self.bridge.config
        if config.duplex:
            self.host.logins.begin(now, config.user_name or None, config.password or None, self)
        else:
            self._log_in(now)

    def login_done(self, now: int, identity: Identity | None) -> None:
        """Handles the login of the connector's user here: what comes over a duplex connection has its rights."""
        if self.gone or self.why:
            return
        if identity is None:
            user = self.bridge.config.user_name
            self.fail(f"userName '{user}' cannot log in here: duplex needs a user of this broker, with its password")
            return
        config = self.bridge.config
        words = (config.name, self.remote_name(), "duplex", self.own_name)
        client_id = config.client_id_token.join(words)
        self.incoming = DuplexInput(self, self.host, self.bridge.node_clients.bridges, now, client_id, identity)
        self._log_in(now)
        self._begin(now)

    def remote_name(self) -> str:
        """Returns the name of the other broker."""
        remote = self.remote
        return "" if remote is None else remote.broker_name or ""

    def _log_in(self, now: int) -> None:
        """Introduces this broker and logs in. The bridge of a duplex connection gives no answer to a login."""
        broker = self.host.broker
        config = self.bridge.config
        url = self.bridge.node_clients.peers.own_url(self.host.wire.local_address(self.conn))
        self.answer(greeting(config, broker.node_id, self.own_name, url))
        rules = rules_of(config, self.own_name, self.remote_name())
        self.answer(
            ConnectionInfo(
                ConnectionId(self._id()),
                rules.names.remote_client_id(),
                config.remote_password or config.password or None,
                config.remote_user_name or config.user_name or None,
                command_id=self.take_command_id(),
                response_required=not config.duplex,
            )
        )

    def _answered(self, now: int, response: Response) -> None:
        """Handles the answer to the login."""
        if isinstance(response, ExceptionResponse):
            cause = response.exception
            self.fail(f"the other broker refuses the login: {'no reason given' if cause is None else cause.message}")
        elif self.outgoing is None and self.remote is not None:
            self._begin(now)
            self._connected(now)

    def _begin(self, now: int) -> None:
        """Begins to forward, and asks for the consumers of the other broker."""
        remote = self.remote
        assert remote is not None and remote.broker_id is not None
        config = self.bridge.config
        connection_id = self._id()
        producer_id = ProducerId(connection_id, 1, SESSION)
        self.answer(SessionInfo(SessionId(connection_id, SESSION)))
        self.answer(ProducerInfo(producer_id))
        rules = rules_of(config, self.own_name, self.remote_name())
        bridge = self.bridge
        shared = bridge.node_clients.bridges
        remote_id = BrokerId(remote.broker_id.value)
        outgoing = DemandBridge(
            self.host, shared, PeerOutput(self), rules, remote_id, producer_id, bridge.refusals,
            Identity(CONNECTOR_USER, (), True),
        )  # fmt: skip
        self.outgoing = outgoing
        outgoing.start(now)
        if not config.static_bridge:
            self.answer(self.advisories.info(config.destination_filter, rules))

    def _connected(self, now: int) -> None:
        if self.connected_at == 0:
            self.connected_at = now
            self.bridge.on_connected(now, self)
            self.bridge.node_clients.peers.listen(self.conn, self.decoder.theirs, self.answer)

    # -- life -----------------------------------------------------------------------------------
    def on_blocked(self, now: int, blocked: bool) -> None:
        if self.outgoing is not None:
            self.outgoing.on_blocked(now, blocked)

    def check_alive(self, now: int) -> bool:
        if self.connected_at == 0 and now - self.opened > OPEN_TIMEOUT_NS:
            self.why = "the other broker has not answered within 30 s: it may be no ActiveMQ broker"
            return False
        if self._held():
            return True
        if 0 <= self.ttl_ns < now - self.last_seen:
            self.why = f"no data from the other broker for {(now - self.last_seen) / 1e9:.1f} s"
            return False
        return True

    def fail(self, why: str) -> None:
        """Closes the connection after this batch of inputs."""
        if not self.why and not self.gone:
            self.why = why
            self.host.closing.append((self.conn, why))

    def tell(self, event: str, why: str) -> None:
        """Reports an event of the bridge."""
        self.bridge.tell(event, why)

    def stop(self, now: int) -> None:
        self.leave("the node stops")

    def leave(self, why: str) -> None:
        """Says good-bye to the other broker, and closes the connection."""
        if self.decoder.theirs is not None and not self.gone:
            self.answer(ShutdownInfo())
        self.fail(why)

    def closed(self, now: int, why: str) -> None:
        if self.gone:
            return
        self.gone = True
        if self.keep_alive is not None:
            self.bridge.node_clients.keep_alives.remove(self.keep_alive)
        if self.outgoing is not None:
            self.outgoing.close(now)
        if self.incoming is not None:
            self.incoming.local.closed(now, why)
        self.bridge.node_clients.peers.end(self.conn)
        self.bridge.on_lost(now, self, self.why or why)
