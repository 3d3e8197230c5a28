"""Clients of the virtual world that behave as `failover:(…)` of activemq-client does (FailoverTransport), with work."""

from __future__ import annotations

from collections.abc import Sequence

from atalanta.sim.host import Host
from atalanta.sim.nodes import PASSWORD, USER
from atalanta.sim.world.network import Machine
from atalanta.sim.world.world import SECOND
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.bodies import text_content, text_of
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.connections import ConnectionControl, ConnectionInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.deliveries import MessageAck, MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from atalanta.wire.openwire.commands.identifiers import (
    ConnectionId,
    ConsumerId,
    MessageId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage
from atalanta.wire.openwire.commands.producers import ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import Response
from atalanta.wire.openwire.encoding.structure import Command
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.wire_format import WireFormat
from tests.cluster.balancing.constant_clients import MILLISECOND, Accounts
from tests.cluster.cluster_rig import OPENWIRE_PORT, Rig

OPTIONS = WireFormatOptions(inactivity_ms=0)
STANDARD = 2
RETRY_NS = 50 * MILLISECOND
PROBE_NS = 2 * SECOND


def uri_of(host: Host) -> str:
    return f"tcp://{host.name}:{OPENWIRE_PORT}"


def balancing(acceptor: AcceptorConfig) -> None:
    """The options of an acceptor that tells and moves its clients."""
    acceptor.options(OpenWireAcceptor).update_cluster_clients = True
    acceptor.options(OpenWireAcceptor).rebalance_cluster_clients = True


class FailoverClient(Machine):
    """Sends every `period_ns`, the next after the answer; acknowledges what it gets.

    `uris` are its own, `updated` those that a broker has told. `priority`: it has `priorityBackup`, for `priority_uris`
    or else the first of its own.
    """

    def __init__(
        self,
        rig: Rig,
        name: str,
        hosts: Sequence[Host],
        accounts: Accounts,
        randomize: bool = True,
        priority: bool = False,
        priority_hosts: Sequence[Host] = (),
        period_ns: int = 200 * MILLISECOND,
    ) -> None:
        self.world, self.network = rig.world, rig.network
        self.name = name
        self.up = True
        self.accounts = accounts
        self.period_ns = period_ns
        self.random = rig.world.random(f"failover/{name}")
        self.uris = [uri_of(host) for host in hosts]
        self.updated: list[str] = []
        self.priority_uris = [uri_of(host) for host in priority_hosts]
        self.randomize, self.priority = randomize, priority
        self.candidates: list[str] = []
        self.at = ""  # the URI where it is
        self.dialled = ""
        self.dials = self.conn = self.commands = self.sent = 0
        self.ready = self.connected_before = self.may_send = False
        self.sending = True
        self.orders = 0
        self.decoder = FrameDecoder(OPTIONS)
        self.under_way: tuple[int, ActiveMQTextMessage] | None = None

    # -- where it goes --------------------------------------------------------------------------
    def start(self) -> None:
        self.reconnect()
        if self.priority:
            self.world.at(PROBE_NS, self.probe)

    def reconnect(self, failed: str = "") -> None:
        self.choose(failed)
        self.dial_next()

    def choose(self, failed: str = "") -> None:
        found = list(dict.fromkeys([*self.updated, *self.uris]))
        self.candidates = [uri for uri in found if uri != failed]
        if self.randomize:
            self.random.shuffle(self.candidates)
        self.candidates += [failed] if failed in found else []

    def dial_next(self) -> None:
        if not self.candidates:
            self.world.at(RETRY_NS, self.reconnect)
            return
        self.dials += 1
        self.dialled = self.candidates.pop(0)
        self.dialled = self.dialled.partition("?")[0]
        host, _, port = self.dialled.removeprefix("tcp://").rpartition(":")
        self.network.dial(self, str(self.dials), host, int(port))

    def is_priority(self, uri: str) -> bool:
        return self.priority and uri in (self.priority_uris or self.uris[:1])

    def probe(self) -> None:
        """Goes to a priority URI that answers; whoever does not is known to the network of the world."""
        wanted = [uri for uri in self.priority_uris or self.uris[:1] if self.answers(uri)]
        if self.ready and not self.is_priority(self.at) and wanted:
            self.leave()
            self.candidates = wanted
            self.dial_next()
        self.world.at(PROBE_NS, self.probe)

    def answers(self, uri: str) -> bool:
        host, _, port = uri.removeprefix("tcp://").rpartition(":")
        return (host, int(port)) in self.network.listening

    def controlled(self, control: ConnectionControl) -> None:
        assert not control.reconnect_to
        told = (control.connected_brokers or "").split(",")
        changed = set(told) != set(self.updated)
        self.updated = told
        if control.rebalance_connection:
            self.orders += 1
            if changed and not self.is_priority(self.at):
                self.rebalance()

    def rebalance(self) -> None:
        """Goes to the first candidate, unless it is there already."""
        at = self.at
        self.choose()
        if self.candidates[0].partition("?")[0] != at:
            self.leave()
            self.dial_next()

    def leave(self) -> None:
        conn, self.conn, self.ready, self.at = self.conn, 0, False, ""
        self.network.close(conn, "reconnects")

    # -- the connection -------------------------------------------------------------------------
    def on_dialed(self, conn: int, key: str) -> None:
        if key != str(self.dials) or self.conn:
            self.network.close(conn, "not wanted any more")
            return
        self.conn, self.at = conn, self.dialled
        self.decoder = FrameDecoder(OPTIONS)
        self.decoder.open()
        self.network.send(conn, WireFormat(HANDSHAKE).encode(info_of(OPTIONS)))

    def on_dial_failed(self, key: str, why: str) -> None:
        if key == str(self.dials):
            self.dial_next()

    def on_closed(self, conn: int, why: str) -> None:
        if conn == self.conn:
            failed = self.at
            self.conn, self.ready, self.at = 0, False, ""
            self.reconnect(failed)

    def on_bytes(self, conn: int, data: bytes) -> None:
        if conn != self.conn:
            return
        self.decoder.feed(data)
        while self.conn == conn and (command := self.decoder.next()) is not None:
            if isinstance(command, BrokerInfo):
                self.log_in()
            elif isinstance(command, ConnectionControl):
                self.controlled(command)
            elif isinstance(command, MessageDispatch):
                self.deliver(command)
            elif isinstance(command, Response):
                self.answered(command.correlation_id)

    def send(self, command: Command, wanted: bool = False) -> int:
        self.commands += 1
        command.command_id = self.commands
        command.response_required = wanted
        self.network.send(self.conn, self.decoder.format.encode(command))
        return self.commands

    def log_in(self) -> None:
        connection = ConnectionId(self.name)
        self.send(ConnectionControl(fault_tolerant=True))
        info = ConnectionInfo(connection, self.name, PASSWORD, USER, manageable=True, fault_tolerant=True)
        info.failover_reconnect = self.connected_before
        self.send(info)
        self.send(SessionInfo(SessionId(self.name, 1)))
        self.send(ProducerInfo(ProducerId(self.name, 1, 1)))
        queue = ActiveMQQueue("orders")
        number = self.send(ConsumerInfo(ConsumerId(self.name, 1, 1), destination=queue, prefetch_size=10), True)
        self.login_number, self.connected_before = number, True
        if self.under_way is not None:
            self.under_way = self.send(self.under_way[1], True), self.under_way[1]

    # -- work -----------------------------------------------------------------------------------
    def answered(self, number: int) -> None:
        if number == self.login_number:
            self.ready = True
            if not self.may_send and self.period_ns:
                self.may_send = True
                self.world.at(self.period_ns, self.send_one)
        elif self.under_way is not None and number == self.under_way[0]:
            self.accounts.confirmed[(text_of(self.under_way[1].content) or "").encode()] = True
            self.under_way = None

    def send_one(self) -> None:
        self.world.at(self.period_ns, self.send_one)
        if self.sending and self.ready and self.under_way is None:
            self.sent += 1
            made = ActiveMQTextMessage()
            made.destination, made.producer_id = ActiveMQQueue("orders"), ProducerId(self.name, 1, 1)
            made.message_id = MessageId(None, made.producer_id, self.sent)
            made.persistent, made.priority = True, 4
            made.content = text_content(f"{self.name}/{self.sent}")
            self.under_way = self.send(made, True), made

    def deliver(self, dispatch: MessageDispatch) -> None:
        message = dispatch.message
        assert message is not None
        body = (text_of(message.content) or "").encode()
        self.accounts.received[body] = self.accounts.received.get(body, 0) + 1
        self.accounts.attempts[body] = max(self.accounts.attempts.get(body, 0), dispatch.redelivery_counter + 1)
        last = message.message_id
        self.send(MessageAck(dispatch.destination, None, dispatch.consumer_id, STANDARD, last, last, 1))

    def on_datagram(self, group: str, data: bytes) -> None:
        return None


def failover(
    rig: Rig, count: int, hosts: Sequence[Host], accounts: Accounts, prefix: str = "f", **options: object
) -> list[FailoverClient]:
    """`count` clients with `failover:(hosts)`, ready."""
    made = []
    for _ in range(count):
        rig.clients += 1
        made.append(FailoverClient(rig, f"{prefix}{rig.clients}", hosts, accounts, **options))  # type: ignore[arg-type]
    for each in made:
        each.start()
    rig.until(lambda: all(each.ready for each in made))
    return made


def places(clients: Sequence[FailoverClient], hosts: Sequence[Host]) -> list[int]:
    """Returns how many clients each node has."""
    return [sum(1 for each in clients if each.ready and each.at == uri_of(host)) for host in hosts]
