"""A client that goes round its list of nodes, as `failover:(…)` of activemq-client does (FailoverTransport)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.nodes import PASSWORD, PORT, USER
from atalanta.sim.world.network import Machine, Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.openwire import (
    HANDSHAKE,
    BrokerInfo,
    Command,
    ConnectionControl,
    ConnectionId,
    ConnectionInfo,
    ExceptionResponse,
    FrameDecoder,
    KeepAliveInfo,
    MessageDispatch,
    Response,
    SessionId,
    SessionInfo,
    WireFormat,
    WireFormatOptions,
    info_of,
)

RETRY_NS: Final = 300_000_000
REFUSED: Final = "already connected"  # a login before the broker has seen the end of the former connection
PATIENCE_MS: Final = 2_000


class FailoverClient(Machine):
    """The base class: connection, login and answers. `at` is the machine where it is, "" without a connection.

    `list` has machines in the order of the URL. A program that is killed starts again with ids of its own.
    """

    def __init__(self, world: World, network: Network, name: str, hosts: list[str]) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.random = world.random(f"failover/{name}")
        self.options = WireFormatOptions(
            version=self.random.choice((12, 12, 11, 9)),
            cache=self.random.random() < 0.5,
            tight=self.random.random() < 0.5,
            inactivity_ms=self.random.choice((0, PATIENCE_MS)),
            inactivity_delay_ms=PATIENCE_MS,
        )
        self.randomize = self.random.random() < 0.5
        self.up = False
        self.ready = False
        self.at = ""
        self.life = 0
        self.failovers = 0
        self.conn = 0
        self._dials = 0
        self._turn: list[str] = []
        self._commands = 0
        self._logged_in = False  # at least once in this life
        self._seen = 0
        self._decoder = FrameDecoder(self.options)
        self._answers: dict[int, Callable[[], None]] = {}
        self.name_nodes(hosts)

    # -- what it does ---------------------------------------------------------------------------
    def on_ready(self) -> None:
        """Begins, or goes on, at a node."""

    def on_message(self, dispatch: MessageDispatch) -> None:
        """Handles a delivery."""

    def on_lost(self) -> None:
        """Handles the end of the connection, and with it of everything that was not answered."""

    def forget(self) -> None:
        """Forgets everything: the program was killed."""

    def done(self) -> bool:
        """Returns True unless there is work that it must finish."""
        return True

    # -- start and kill -------------------------------------------------------------------------
    def name_nodes(self, hosts: list[str]) -> None:
        """Sets its list: all machines of these nodes."""
        self.list = [each for host in hosts for each in (host, *self.network.partners.get(host, []))]

    def start(self) -> None:
        if not self.up:
            self.up = True
            self.life += 1
            self._logged_in = False
            self._reconnect()

    def kill(self) -> None:
        """Kills the client like SIGKILL: everything in memory is lost."""
        self.up = False
        self._dials += 1
        self.network.drop_machine(self)
        self._end()
        self.forget()

    def go(self, hosts: list[str]) -> None:
        """Goes to other nodes."""
        self.name_nodes(hosts)
        if self.up:
            self._leave("goes to other nodes")

    def _leave(self, why: str) -> None:
        if self.conn:
            self.network.close(self.conn, why)
            self._end()
            self._reconnect()

    def _end(self) -> None:
        self.conn = 0
        self.ready = False
        self.at = ""
        self._answers.clear()
        self.on_lost()

    # -- where it goes --------------------------------------------------------------------------
    def _reconnect(self) -> None:
        self._turn = list(self.list)
        if self.randomize:
            self.random.shuffle(self._turn)
        self._dial()

    def _dial(self) -> None:
        self._dials += 1
        if self._turn:
            self.network.dial(self, str(self._dials), self._turn[0], PORT)
            return
        dials = self._dials
        self.world.at(RETRY_NS, lambda: self._again(dials))

    def _again(self, dials: int) -> None:
        if self.up and self._dials == dials:
            self._reconnect()

    def on_dialed(self, conn: int, key: str) -> None:
        if key != str(self._dials) or self.conn or not self.up:
            self.network.close(conn, "not wanted any more")
            return
        self.conn = conn
        self.at = self._turn[0]
        self._turn = self._turn[1:]
        self._seen = self.world.now
        self._decoder = FrameDecoder(self.options)
        self._decoder.open()
        self.network.send(conn, WireFormat(HANDSHAKE).encode(info_of(self.options)))
        if self.options.inactivity_ms:
            self.world.at(SECOND // 2, lambda: self._tick(conn))

    def on_dial_failed(self, key: str, why: str) -> None:
        if key == str(self._dials):
            self._turn = self._turn[1:]
            self._dial()

    def on_closed(self, conn: int, why: str) -> None:
        if conn == self.conn:
            self._end()
            self._reconnect()

    def _tick(self, conn: int) -> None:
        """Tells that it is there; a node that does not for too long counts as lost (InactivityMonitor)."""
        if conn != self.conn or not self.up:
            return
        if self.world.now - self._seen > 2 * PATIENCE_MS * 1_000_000:
            self._leave("the node is silent")
            return
        if self.ready:
            self.tell(KeepAliveInfo())
        self.world.at(SECOND // 2, lambda: self._tick(conn))

    # -- commands -------------------------------------------------------------------------------
    def on_bytes(self, conn: int, data: bytes) -> None:
        if conn != self.conn:
            return
        self._seen = self.world.now
        decoder = self._decoder
        decoder.feed(data)
        while self.conn == conn and (command := decoder.next()) is not None:
            if isinstance(command, BrokerInfo):
                self._log_in()
            elif isinstance(command, MessageDispatch):
                self.on_message(command)
            elif isinstance(command, ExceptionResponse):
                cause = command.exception
                self._refused("no reason given" if cause is None else cause.message or "")
            elif isinstance(command, Response):
                self._answers.pop(command.correlation_id, do_nothing)()
            elif isinstance(command, KeepAliveInfo) and command.response_required:
                self.tell(KeepAliveInfo(command.command_id))

    def _refused(self, why: str) -> None:
        if self.ready or REFUSED not in why:
            raise Violation(f"{self.name} at {self.at}: {why}")
        self.network.close(self.conn, "refused")
        self._end()
        self._turn = []
        self._dial()

    def _log_in(self) -> None:
        self.tell(ConnectionControl(fault_tolerant=True))
        self.call(
            ConnectionInfo(
                ConnectionId(self.id()), self.client_id(), PASSWORD, USER, fault_tolerant=True,
                failover_reconnect=self._logged_in,
            ),  # fmt: skip
            self._admitted,
        )

    def _admitted(self) -> None:
        self.failovers += self._logged_in
        self._logged_in = True
        self.ready = True
        self.tell(SessionInfo(SessionId(self.id(), 1)))
        self.world.note(f"{self.name} is at {self.at}")
        self.on_ready()

    def id(self) -> str:
        """Returns the id of its connections, which stays over failovers."""
        return f"ID:{self.name}-{self.life}"

    def client_id(self) -> str:
        """Returns its client id; that of a durable subscriber stays."""
        return self.id()

    def tell(self, command: Command) -> int:
        self._commands += 1
        command.command_id = self._commands
        self.network.send(self.conn, self._decoder.format.encode(command))
        return self._commands

    def call(self, command: Command, then: Callable[[], None]) -> None:
        """Sends a command; `then` is called with the answer, if one comes before the connection ends."""
        command.response_required = True
        self._answers[self.tell(command)] = then

    def later(self, delay_ns: int, call: Callable[[], None]) -> None:
        """Schedules a call that is void when the connection ends."""
        conn = self.conn

        def due() -> None:
            if self.up and self.ready and self.conn == conn:
                call()

        self.world.at(delay_ns, due)

    def on_accepted(self, conn: int, port: int) -> None:
        raise AssertionError("clients do not listen")

    def on_datagram(self, group: str, data: bytes) -> None:
        return None


def do_nothing() -> None:
    return None
