"""A client that sends the very packets it is told to, for tests of what a node makes of them."""

from __future__ import annotations

from typing import Final

from atalanta.sim.nodes import PASSWORD, PORT, USER
from atalanta.sim.world.network import Machine, Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import (
    DisconnectV3,
    ExceptionResponse,
    PacketsConfirmed,
    Ping,
)
from atalanta.wire.core.packets.session import CreateSession, CreateSessionResponse
from atalanta.wire.core.packets.topology import ClusterTopology, SubscribeTopologyV2

CHANNEL: Final = 10
TTL_MS: Final = 5_000
PING_NS: Final = 2 * SECOND
REFUSED_RETRY_NS: Final = SECOND // 50
SILENCE_NS: Final = 6 * SECOND


class RawClient(Machine):
    """Connects to `target` (a node's name), logs in with a session on CHANNEL, and hands packets to `on_packet`."""

    transacted: bool = False
    xa: bool = False

    def __init__(self, world: World, network: Network, name: str, target: str) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.target = target
        self.port = PORT
        self.up = False
        self.life = 0
        self.conn = 0
        self.ready = False
        self.last_heard = 0
        self.framer = Framer(False)
        self.retry_ns: int = world.random(f"retry/{name}").choice((1_000_000, SECOND // 2))

    def on_ready(self) -> None:
        """Logged in on a fresh session."""
        raise NotImplementedError

    def on_packet(self, packet: Packet) -> None:
        raise NotImplementedError

    def on_lost(self) -> None:
        """The session is gone; a new one is on its way."""
        raise NotImplementedError

    def move(self, target: str) -> None:
        """Ends here and comes up there."""
        was_up = self.up
        if was_up:
            self.kill()
        self.target = target
        if was_up:
            self.start()

    # -- connection -----------------------------------------------------------------------------
    def start(self) -> None:
        if self.up:
            return
        self.up = True
        self.life += 1
        self._dial()

    def kill(self) -> None:
        """As SIGKILL: everything in memory is gone."""
        self.up = False
        self.life += 1
        self.conn = 0
        self.network.drop_machine(self)
        self._session_lost()

    def _dial(self) -> None:
        self.network.dial(self, f"{self.life}", self.target, self.port)

    def on_dialed(self, conn: int, key: str) -> None:
        if key != str(self.life) or self.conn:
            self.network.close(conn, "not wanted any more")
            return
        self.conn = conn
        self.framer = Framer(False)
        self.last_heard = self.world.now
        self.network.send(conn, HANDSHAKE)
        self.send(Ping(TTL_MS), 0)
        self.send(SubscribeTopologyV2(False, 136), 0)
        auto = not self.transacted
        name = f"{self.name}/{conn}"
        self.send(CreateSession(name, CHANNEL, 136, USER, PASSWORD, 102400, self.xa, auto, auto), 1)
        self._keep_alive(conn)

    def _session_lost(self) -> None:
        self.ready = False
        self.on_lost()

    def _keep_alive(self, conn: int) -> None:
        if self.conn != conn:
            return
        if self.world.now - self.last_heard > SILENCE_NS:
            self.network.close(conn, "silent")
            self.on_closed(conn, "silent")
            return
        self.send(Ping(TTL_MS), 0)
        self.world.at(PING_NS, lambda: self._keep_alive(conn))

    def on_dial_failed(self, key: str, why: str) -> None:
        life = self.life
        self.world.at(self.retry_ns, lambda: self._again(life))

    def on_closed(self, conn: int, why: str) -> None:
        if conn != self.conn:
            return
        self.conn = 0
        # A node that leaves refuses logins for a minute or more.
        retry_ns = self.retry_ns if self.ready else max(self.retry_ns, REFUSED_RETRY_NS)
        self._session_lost()
        life = self.life
        self.world.at(retry_ns, lambda: self._again(life))

    def _again(self, life: int) -> None:
        if self.up and self.life == life and not self.conn:
            self._dial()

    def on_accepted(self, conn: int, port: int) -> None:
        raise AssertionError("clients do not listen")

    def on_datagram(self, group: str, data: bytes) -> None:
        return None

    # -- packets --------------------------------------------------------------------------------
    def send(self, packet: Packet, channel: int = CHANNEL) -> None:
        if self.conn:
            self.network.send(self.conn, codec.encode(packet, channel))

    def on_bytes(self, conn: int, data: bytes) -> None:
        if conn != self.conn:
            return
        self.last_heard = self.world.now
        for frame in self.framer.feed(data):
            if self.conn != conn:
                return
            packet = codec.decode_frame(frame)
            if isinstance(packet, Ping | PacketsConfirmed | ClusterTopology):
                continue
            if isinstance(packet, DisconnectV3):
                self.network.close(conn, "the server said good-bye")
                self.on_closed(conn, "good-bye")
                return
            if isinstance(packet, CreateSessionResponse):
                self.ready = True
                self.on_ready()
            elif isinstance(packet, ExceptionResponse) and not self.ready:
                self.network.close(conn, "login refused")
                self.on_closed(conn, "login refused")
                return
            else:
                self.on_packet(packet)
