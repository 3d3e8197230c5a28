"""Simulated clients: real CORE frames, reconnecting for ever, each with its own job (producer, consumer, reader)."""

from __future__ import annotations

from typing import Final

from atalanta.sim.network import Machine, Network
from atalanta.sim.nodes import PASSWORD, PORT, USER
from atalanta.sim.patience import Patience
from atalanta.sim.world import SECOND, World
from atalanta.wire.core import codec
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_connection import (
    REASON_SCALE_DOWN,
    DisconnectV3,
    ExceptionResponse,
    PacketsConfirmed,
    Ping,
)
from atalanta.wire.core.packets_session import (
    CreateSession,
    CreateSessionResponse,
    ReattachSession,
    ReattachSessionResponse,
)
from atalanta.wire.core.packets_topology import ClusterTopology, SubscribeTopologyV2
from atalanta.wire.core.types import HANDSHAKE

CHANNEL: Final = 10
TTL_MS: Final = 5_000
PING_NS: Final = 2 * SECOND
SILENCE_NS: Final = 6 * SECOND
ABROAD_NS: Final = (SECOND // 2, 8 * SECOND)  # of a client that followed its node to another


class SimClient(Machine):
    """Connects to `target` (a node's name), logs in, and hands packets to its job. It can be killed and started.

    With a `window_bytes` it goes on with its session on a new connection where the node still has it. One that
    `follows` goes where a node that leaves sends it, and comes home after a while.
    """

    transacted: bool = False
    xa: bool = False
    window_bytes: int = -1
    confirm_every: int = 10  # frames
    follows: bool = False

    def __init__(self, world: World, network: Network, name: str, target: str) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.target = target
        self.port = PORT
        self.home = target
        self.abroad = False  # it has followed its node
        self.followed = 0
        self.up = False
        self.life = 0
        self.conn = 0
        self.session = 0  # another number for each session: what belongs to an earlier one is void
        self.patience: Patience | None = None
        self.reattached = 0
        self.ready = False
        self.view: dict[str, tuple[str, int]] = {}  # members by node id: host and port
        self.last_heard = 0
        self.framer = Framer(False)
        # Some clients come back at once, so that a repeat meets a first copy which is not yet on disk.
        self.retry_ns: int = world.random(f"retry/{name}").choice((1_000_000, SECOND // 2))

    # -- job ------------------------------------------------------------------------------------
    def on_ready(self) -> None:
        """Logged in on a fresh session."""
        raise NotImplementedError

    def on_packet(self, packet: Packet) -> None:
        raise NotImplementedError

    def on_lost(self) -> None:
        """The session is gone; a new one is on its way."""
        raise NotImplementedError

    def on_goodbye(self, packet: DisconnectV3) -> None:
        """The node ends this connection, and may say where to go."""
        place = packet.target
        if self.follows and packet.reason == REASON_SCALE_DOWN and place is not None:
            self.world.note(f"{self.name} follows {self.target} to {place.host}")
            self.target = place.host
            self.followed += 1
            if not self.abroad:
                self.abroad = True
                delay_ns = self.world.random(f"abroad/{self.name}").randint(*ABROAD_NS)
                self.world.at(delay_ns, self.go_home)

    def go_home(self) -> None:
        """Close here, come up there, as soon as nothing is open that could be at both."""
        if not self.at_ease():
            self.world.at(SECOND // 20, self.go_home)
            return
        self.abroad = False
        if self.target != self.home:
            self.move(self.home)

    def at_ease(self) -> bool:
        """May it go to another node?"""
        return True

    def move(self, target: str) -> None:
        """What is unacknowledged is redelivered."""
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
        self.view = {}
        self.framer = Framer(False)
        self.last_heard = self.world.now
        self.network.send(conn, HANDSHAKE)
        self.send(Ping(TTL_MS), 0)
        self.send(SubscribeTopologyV2(False, 136), 0)
        if self.patience is None:
            self._log_in(conn)
        else:
            self.send(ReattachSession(self.patience.name, self.patience.last), 1)
        self._keep_alive(conn)

    def _log_in(self, conn: int) -> None:
        auto = not self.transacted
        name = f"{self.name}/{conn}"
        self.session += 1
        if self.window_bytes > 0:
            self.patience = Patience(name, self.world.now, self.confirm_every)
        self.send(self.login(name, auto), 1)

    def login(self, name: str, auto: bool) -> CreateSession:
        """The first packet of a new session; `auto`: without transactions."""
        return CreateSession(
            name=name,
            session_channel=CHANNEL,
            version=136,
            user=USER,
            password=PASSWORD,
            xa=self.xa,
            auto_commit_sends=auto,
            auto_commit_acks=auto,
            confirmation_window=self.window_bytes,
        )

    def _session_lost(self) -> None:
        self.ready = False
        self.session += 1
        self.patience = None
        self.on_lost()

    def attached(self) -> bool:
        """Has a connection, and the node knows that its session goes on there."""
        return self.conn != 0 and (self.patience is None or not self.patience.waiting)

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
        if self.patience is not None and self.world.now - self.patience.since > SILENCE_NS:
            self._session_lost()
        self.world.at(self.retry_ns, lambda: self._again(life))

    def on_closed(self, conn: int, why: str) -> None:
        if conn != self.conn:
            return
        self.conn = 0
        if self.patience is None or not self.ready:
            self._session_lost()
        elif not self.patience.waiting:
            self.patience.waiting = True
            self.patience.since = self.world.now
        life = self.life
        self.world.at(self.retry_ns, lambda: self._again(life))

    def _again(self, life: int) -> None:
        if self.up and self.life == life and not self.conn:
            self._dial()

    def on_accepted(self, conn: int, port: int) -> None:
        raise AssertionError("clients do not listen")

    def on_datagram(self, group: str, data: bytes) -> None:
        return None

    # -- packets --------------------------------------------------------------------------------
    def send(self, packet: Packet, channel: int = CHANNEL) -> None:
        if channel == CHANNEL and self.patience is not None and not self.patience.sends(packet):
            return
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
            if isinstance(packet, ClusterTopology):
                self._learn(packet)
                continue
            if isinstance(packet, PacketsConfirmed) and self.patience is not None:
                self.patience.confirmed(packet.command_id)
            if isinstance(packet, Ping | PacketsConfirmed):
                continue
            if isinstance(packet, DisconnectV3):
                self.patience = None
                self.on_goodbye(packet)
                self.network.close(conn, "the server said good-bye")
                self.on_closed(conn, "good-bye")
                return
            if isinstance(packet, CreateSessionResponse):
                self.ready = True
                self.on_ready()
            elif isinstance(packet, ReattachSessionResponse):
                self._reattach(conn, packet)
            elif isinstance(packet, ExceptionResponse) and not self.ready:
                self.network.close(conn, "login refused")
                self.on_closed(conn, "login refused")
                return
            else:
                if self.patience is not None and self.patience.got(packet):
                    self.network.send(
                        conn, codec.encode(PacketsConfirmed(self.patience.last), CHANNEL)
                    )
                self.on_packet(packet)

    def _reattach(self, conn: int, packet: ReattachSessionResponse) -> None:
        """What the node has not got is sent again; or the session begins anew."""
        patience = self.patience
        if patience is None or not packet.reattached:
            self._session_lost()
            self._log_in(conn)
            return
        patience.confirmed(packet.last_confirmed_command_id)
        patience.waiting = False
        self.reattached += 1
        for kept in patience.kept:
            self.network.send(conn, codec.encode(kept, CHANNEL))

    def _learn(self, packet: ClusterTopology) -> None:
        if packet.exit:
            self.view.pop(packet.node_id, None)
        elif packet.primary is not None:
            self.view[packet.node_id] = (packet.primary.host, packet.primary.port)
