"""Simulated programs: each drives the engine of the Python client (wire.core.client) and reconnects without end.

The simulation thus tests the engine under every fault: sessions that are created again, messages that are sent
again, credits and acknowledgements. The use of the engine is a job, in sim/clients/jobs.py, sim/clients/mover.py,
sim/clients/readers.py and the loads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.clients.reattach import ReattachWait, whole
from atalanta.sim.nodes import PASSWORD, PORT, USER
from atalanta.sim.world.network import Machine, Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core import (
    HANDSHAKE,
    PING_CHANNEL,
    SESSION_CHANNEL,
    Framer,
    TransportConfiguration,
)
from atalanta.wire.core.client import (
    BrokerConnection,
    CallTimedOut,
    ClientError,
    ClientEvents,
    ClientSession,
    ConnectionSettings,
    Reply,
    SessionSettings,
)
from atalanta.wire.core.packets import (
    REASON_SCALE_DOWN,
    Packet,
    Ping,
    ReattachSession,
    ReattachSessionResponse,
    SubscribeTopologyV2,
    encode,
)

TTL_NS: Final = 6 * SECOND
PING_NS: Final = 2 * SECOND
TICK_NS: Final = SECOND
ABROAD_NS: Final = (SECOND // 2, 8 * SECOND)  # time at another node, of a client that followed its node's messages


class SimClient(Machine):
    """A client with one session at `target` (a node's name), for one job. Faults kill and start it.

    With `resume` the session is created again on the next connection, like the client's reconnectAttempts; otherwise
    a new session replaces it. With a `window_bytes` the client reattaches its session if the node still has it. A
    client that `follows` connects to the target of a scale-down, and returns to its own node after a while.
    """

    transacted: bool = False
    xa: bool = False
    resume: bool = True
    window_bytes: int = -1
    producer_window: int = -1
    follows: bool = False

    engine: BrokerConnection
    session: ClientSession

    def __init__(self, world: World, network: Network, name: str, target: str) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.target = target
        self.port = PORT
        self.attempts = 0  # at its target: it tries the machines of a node in turn
        self.home = target
        self.abroad = False  # it has followed its node's messages
        self.followed = 0
        self.up = False
        self.life = 0
        self.losses = 0  # calls made before the last loss are void
        self.conn = 0
        self.patience: ReattachWait | None = None
        self.framer = Framer(False)
        self.reattached = 0
        self.resumed = 0  # number of times that its session was created again
        self.ready = False
        # Some clients reconnect at once, so that a repeat arrives while the first copy is not yet
        # on disk.
        self.retry_ns: int = world.random(f"retry/{name}").choice((1_000_000, SECOND // 2))

    # -- job callbacks --------------------------------------------------------------------------
    def on_session(self) -> None:
        """Creates the producers and consumers of a new session."""
        raise NotImplementedError

    def on_resumed(self) -> None:
        """Handles a session that was created again after a loss."""

    def on_lost(self) -> None:
        """Handles a lost session. The session is created again on the next connection, or replaced by a new one."""

    def on_topology(self) -> None:
        """Handles a topology that has changed."""

    def on_disconnect_notice(self, reason: int, target: TransportConfiguration | None) -> None:
        """Handles the node's DISCONNECT, which may name another node."""
        if self.follows and reason == REASON_SCALE_DOWN and target is not None:
            self.world.note(f"{self.name} follows {self.target} to {target.host}")
            self.target = target.host
            self.followed += 1
            if not self.abroad:
                self.abroad = True
                delay_ns = self.world.random(f"abroad/{self.name}").randint(*ABROAD_NS)
                self.world.at(delay_ns, self.go_home)

    def go_home(self) -> None:
        """Returns to its own node, as soon as no message is open that could be at both nodes."""
        if not self.at_ease():
            self.world.at(SECOND // 20, self.go_home)
            return
        self.abroad = False
        if self.target != self.home:
            self.move(self.home)

    def at_ease(self) -> bool:
        """Returns True if the client may connect to another node."""
        return True

    def move(self, target: str) -> None:
        """Connects to another node. Unacknowledged messages are redelivered."""
        was_up = self.up
        if was_up:
            self.kill()
        self.target = target
        self.attempts = 0
        if was_up:
            self.start()

    # -- for jobs -------------------------------------------------------------------------------
    def later(self, delay_ns: int, call: Callable[[], None]) -> None:
        """Schedules a call that is void once the session is lost or was created again."""
        losses, session = self.losses, self.session

        def due() -> None:
            if self.ready and self.losses == losses and self.session is session:
                call()

        self.world.at(delay_ns, due)

    def in_session(self, delay_ns: int, call: Callable[[], None]) -> None:
        """Schedules a call that is kept over lost connections, but not over the session's end."""
        session = self.session

        def due() -> None:
            if self.up and self.session is session and not session.closed:
                call()

        self.world.at(delay_ns, due)

    def cut_short(self, error: ClientError) -> bool:
        """Returns True if a call failed with its connection. After a timeout the program restarts."""
        if isinstance(error, CallTimedOut):
            self.restart()
            return True
        return not self.session.open

    def restart(self) -> None:
        """Kills the program at the end of this instant, and starts it again."""
        life = self.life

        def now() -> None:
            if self.life == life and self.up:
                self.kill()
                self.start()

        self.world.at(0, now)

    def attached(self) -> bool:
        """Returns True if there is a connection on which the session continues, as the node knows too."""
        return self.conn != 0 and (self.patience is None or not self.patience.waiting)

    @property
    def view(self) -> dict[str, tuple[str, int]]:
        """Returns the members that the client knows: host and port by node id."""
        members = self.engine.topology.values()
        return {each.node_id: (each.host or "", each.port or 0) for each in members}

    # -- start and kill -------------------------------------------------------------------------
    def start(self) -> None:
        if self.up:
            return
        self.up = True
        self.life += 1
        self._make_engine()
        self._dial()

    def kill(self) -> None:
        """Kills the client like SIGKILL: everything in memory is lost."""
        self.up = False
        self.life += 1
        self.conn = 0
        self.network.drop_machine(self)
        self.patience = None
        self._make_engine()
        self._lost()

    def _make_engine(self) -> None:
        settings = ConnectionSettings(TTL_NS, PING_NS, resume=self.resume)
        self.engine = BrokerConnection(self._write, settings, Events(self))
        self._make_session()

    def _make_session(self) -> None:
        self.session = self.engine.session(self.login())
        self.session.opened.on_done = self._login_answered

    def _login_answered(self, reply: Reply) -> None:
        if reply.error is not None:
            self.broken(f"login refused: {reply.error.text}")

    def login(self) -> SessionSettings:
        """Returns the settings of a new session."""
        return SessionSettings(
            f"{self.name}/{self.life}/{self.losses}",
            USER,
            PASSWORD,
            not self.transacted,
            not self.transacted,
            confirmation_window=self.window_bytes,
            producer_window=self.producer_window,
            resume=self.resume,
            xa=self.xa,
        )

    def _lost(self) -> None:
        self.ready = False
        self.losses += 1
        self.on_lost()

    # -- connection -----------------------------------------------------------------------------
    def _dial(self) -> None:
        machines = [self.target, *self.network.partners.get(self.target, [])]
        address = machines[self.attempts % len(machines)]
        self.network.dial(self, f"{self.life}", address, self.port)

    def on_dialed(self, conn: int, key: str) -> None:
        if key != str(self.life) or self.conn:
            self.network.close(conn, "not wanted any more")
            return
        self.conn = conn
        self.framer = Framer(False)
        if self.patience is not None:
            self._reattach(conn, self.patience)
        else:
            if self.engine.failed is not None:
                self._make_engine()
            elif self.session.closed:
                self._make_session()
            if self.window_bytes > 0:
                self.patience = ReattachWait(self.session.settings.name, self.session.channel)
            self.engine.start(self.world.now)
        self.world.at(TICK_NS, lambda: self._tick(conn))

    def _tick(self, conn: int) -> None:
        if self.conn == conn:
            self.engine.on_timer(self.world.now)
            self.world.at(TICK_NS, lambda: self._tick(conn))

    def on_dial_failed(self, key: str, why: str) -> None:
        if self.patience is not None and self.world.now - self.patience.since > TTL_NS:
            self._engine_lost(why)
        self._again_later()

    def broken(self, why: str) -> None:
        """Ends an unusable connection, but not within the engine's call: no shell does that."""
        conn = self.conn

        def end() -> None:
            if conn and self.conn == conn:
                self.network.close(conn, why)
                self.on_closed(conn, why)

        self.world.at(0, end)

    def on_closed(self, conn: int, why: str) -> None:
        if conn != self.conn:
            return
        self.conn = 0
        if self.patience is not None and self.ready:
            self.patience.wait(self.world.now)
        else:
            self._engine_lost(why)
        self._again_later()

    def _engine_lost(self, why: str) -> None:
        self.patience = None
        self.engine.lost(self.world.now, why)
        self._lost()

    def _again_later(self) -> None:
        """Connects again soon, to the next machine of the node if it has several."""
        self.attempts += 1
        life = self.life
        self.world.at(max(self.retry_ns, self.network.retries_ns.get(self.target, 0)), lambda: self._again(life))

    def _again(self, life: int) -> None:
        if self.up and self.life == life and not self.conn:
            self._dial()

    def on_accepted(self, conn: int, port: int) -> None:
        raise AssertionError("clients do not listen")

    def on_datagram(self, group: str, data: bytes) -> None:
        return None

    # -- bytes ----------------------------------------------------------------------------------
    def _write(self, data: bytes) -> None:
        if self.patience is not None:
            self.patience.sent(data)
            if self.patience.waiting:
                return
        if self.conn:
            self.network.send(self.conn, data)

    def on_bytes(self, conn: int, data: bytes) -> None:
        if conn != self.conn:
            return
        patience = self.patience
        if patience is None:
            self.engine.feed(self.world.now, data)
            return
        for frame in self.framer.feed(data):
            if self.conn != conn or self.patience is not patience:
                return
            patience.received(frame)
            self.engine.feed(self.world.now, whole(frame))

    def _reattach(self, conn: int, patience: ReattachWait) -> None:
        """Sends the handshake for the engine, which does not know this connection, and requests the session."""
        self.engine.topology.clear()
        self.network.send(conn, HANDSHAKE)
        greeting = (
            (Ping(TTL_NS // 1_000_000), PING_CHANNEL),
            (SubscribeTopologyV2(False, 136), PING_CHANNEL),
            (ReattachSession(patience.name, patience.last), SESSION_CHANNEL),
        )
        for packet, channel in greeting:
            self.network.send(conn, encode(packet, channel))

    def on_reattached(self, packet: ReattachSessionResponse) -> None:
        """Sends the lost frames again. If the node has lost the session, the engine starts anew on another
        connection."""
        patience = self.patience
        if patience is None or not packet.reattached:
            self._engine_lost("the node has not got the session any more")
            self.broken("not reattached")
            return
        patience.confirmed(packet.last_confirmed_command_id)
        patience.waiting = False
        self.reattached += 1
        for kept in patience.kept:
            self.network.send(self.conn, kept)


class Events(ClientEvents):
    """The engine's listener, which passes events to the client."""

    def __init__(self, client: SimClient) -> None:
        self.client = client
        self.session: ClientSession | None = None  # the session that was created at least once

    def ready(self) -> None:
        client = self.client
        client.ready = True
        if self.session is client.session:
            client.resumed += 1
            client.on_resumed()
        else:
            self.session = client.session
            client.on_session()

    def broken(self, why: str) -> None:
        if "cannot be understood" in why:
            raise Violation(f"{self.client.name}: {why}")
        self.client.broken(why)

    def disconnected(
        self, reason: int, target_node_id: str | None, target: TransportConfiguration | None
    ) -> None:
        self.client.patience = None
        self.client.on_disconnect_notice(reason, target)

    def topology_changed(self) -> None:
        self.client.on_topology()

    def packet(self, channel: int, packet: Packet) -> bool:
        if isinstance(packet, ReattachSessionResponse):
            self.client.on_reattached(packet)
        return True

    def session_error(self, channel: int, error: ClientError) -> None:
        raise Violation(f"{self.client.name}: {error.text}")

    def want_flush(self) -> None:
        client = self.client
        client.world.at(0, lambda: client.engine.flush())


def then(reply: Reply, call: Callable[[Reply], None]) -> None:
    """Calls `call` when the reply is done, or at once if it is."""
    if reply.done:
        call(reply)
    else:
        reply.on_done = call
