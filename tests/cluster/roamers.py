"""Clients of the virtual world that behave as an Artemis JMS client with reconnection does, and count what they see."""

from __future__ import annotations

from atalanta.kernel.message import Message
from atalanta.sim.nodes import PASSWORD, PORT, USER
from atalanta.sim.world import SECOND
from atalanta.wire.core import codec
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_connection import (
    REASON_REDIRECT,
    CheckForFailover,
    DisconnectV3,
    NullResponse,
    Ping,
)
from atalanta.wire.core.packets_consumer import CreateConsumer, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets_message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets_producer import CreateProducer
from atalanta.wire.core.packets_session import CreateSession, SessionStart
from atalanta.wire.core.packets_topology import ClusterTopology, SubscribeTopologyV2
from atalanta.wire.core.types import HANDSHAKE
from tests.cluster.rig import Client, Rig

WINDOW_BYTES = 10_000
MILLISECOND = SECOND // 1_000


class Accounts:
    """What all clients of a test did together."""

    def __init__(self) -> None:
        self.confirmed: dict[bytes, bool] = {}
        self.unsure: dict[bytes, bool] = {}  # the node stopped before it answered
        self.received: dict[bytes, int] = {}
        self.attempts: dict[bytes, int] = {}  # the highest delivery count seen
        self.redirects: int = 0
        self.errors: int = 0  # calls that a redirect cut short

    def lost(self) -> list[bytes]:
        return [body for body in self.confirmed if body not in self.received]

    def repeated(self, times: int) -> list[bytes]:
        """Received more often than `times`, though the sender never had to repeat it; or marked as such."""
        return [
            body
            for body, count in self.received.items()
            if (count > times or self.attempts[body] > times) and body not in self.unsure
        ]


class Roamer(Client):
    """Works `work_ns` on each message before it acknowledges; sends every `period_ns`, the next after the answer.

    It goes where a redirect says, else to the next of `names` when its node leaves. `knows_way` False: it never tells
    that it reconnects.
    """

    def __init__(
        self, rig: Rig, name: str, target: str, names: list[str], accounts: Accounts,
        queue: str = "orders", period_ns: int = 200 * MILLISECOND, work_ns: int = 5 * MILLISECOND,
    ) -> None:  # fmt: skip
        super().__init__(rig.world, rig.network, name, target)
        self.names = names
        self.accounts = accounts
        self.queue = queue
        self.period_ns = period_ns
        self.work_ns = work_ns
        self.retry_ns = 50 * MILLISECOND
        self.was_at: str | None = None  # node id
        self.redirected = False
        self.reconnects = True
        self.under_way: bytes | None = None
        self.work: list[ReceiveMessage] = []
        self.sent = 0
        self.sending = True

    # -- connection -----------------------------------------------------------------------------
    def on_dialed(self, conn: int, key: str) -> None:
        if key != str(self.life) or self.conn:
            self.network.close(conn, "not wanted any more")
            return
        self.conn = conn
        self.framer = type(self.framer)(False)
        self.last_heard = self.world.now
        self.network.send(conn, HANDSHAKE)
        self.send(Ping(60_000), 0)
        if self.was_at is not None and self.reconnects:
            self.send(CheckForFailover(self.was_at), 1)
        self.send(SubscribeTopologyV2(False, 136), 0)
        self.send(CreateSession(f"{self.name}/{conn}", 10, 136, USER, PASSWORD, 102400), 1)

    def on_dial_failed(self, key: str, why: str) -> None:
        self.target = self.names[(self.names.index(self.target) + 1) % len(self.names)]
        super().on_dial_failed(key, why)

    def on_bytes(self, conn: int, data: bytes) -> None:
        if conn != self.conn:
            return
        for frame in self.framer.feed(data):
            if self.conn != conn:
                return
            packet = codec.decode_frame(frame)
            if isinstance(packet, DisconnectV3):
                self.told(conn, packet)
                return
            if isinstance(packet, ClusterTopology):
                if packet.primary is not None and packet.primary.host == self.target:
                    self.was_at = packet.node_id
            elif packet.__class__.__name__ == "CreateSessionResponse":
                self.ready = True
                self.on_ready()
            elif isinstance(packet, ReceiveMessage | NullResponse):
                self.on_packet(packet)

    def told(self, conn: int, packet: DisconnectV3) -> None:
        if packet.reason == REASON_REDIRECT:
            assert packet.target is not None
            self.accounts.redirects += 1
            self.accounts.errors += self.under_way is not None
            self.target = packet.target.host
        else:
            self.target = self.names[(self.names.index(self.target) + 1) % len(self.names)]
        self.network.close(conn, "told to go")
        self.on_closed(conn, "told to go")

    def on_lost(self) -> None:
        self.work = []
        if self.under_way is not None:
            self.accounts.unsure[self.under_way] = True
            self.under_way = None

    # -- work -----------------------------------------------------------------------------------
    def on_ready(self) -> None:
        self.send(SessionStart())
        self.send(CreateProducer(1, self.queue))
        self.send(CreateConsumer(0, self.queue, None, False, True, 0))
        self.send(FlowToken(0, WINDOW_BYTES))
        conn = self.conn
        self.world.at(self.period_ns, lambda: self.send_one(conn))

    def send_one(self, conn: int) -> None:
        if self.conn != conn or not self.sending:
            return
        self.sent += 1
        self.under_way = f"{self.name}/{self.sent}".encode()
        message = Message.create(
            self.queue, self.under_way, 4, True, self.world.now // 1_000_000, 4
        )
        self.send(SendMessage(message, True, self.sent, 1))

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, NullResponse):
            if packet.correlation == self.sent and self.under_way is not None:
                self.accounts.confirmed[self.under_way] = True
                self.under_way = None
                conn = self.conn
                self.world.at(self.period_ns, lambda: self.send_one(conn))
        elif isinstance(packet, ReceiveMessage):
            self.work.append(packet)
            if len(self.work) == 1:
                self.begin()

    def begin(self) -> None:
        conn = self.conn
        self.world.at(self.work_ns, lambda: self.finish(conn))

    def finish(self, conn: int) -> None:
        if self.conn != conn or not self.work:
            return
        packet = self.work.pop(0)
        body = bytes(packet.message.body)
        self.accounts.received[body] = self.accounts.received.get(body, 0) + 1
        self.accounts.attempts[body] = max(
            self.accounts.attempts.get(body, 0), packet.delivery_count
        )
        self.send(IndividualAcknowledge(packet.consumer_id, packet.message.id, False))
        self.send(FlowToken(0, packet.message.size + 64))
        if self.work:
            self.begin()


def roam(rig: Rig, target: str, count: int, accounts: Accounts, **options: object) -> list[Roamer]:
    """`count` clients at that node, ready."""
    names = [host.name for host in rig.hosts]
    made = []
    for _ in range(count):
        rig.clients += 1
        made.append(Roamer(rig, f"r{rig.clients}", target, names, accounts, **options))  # type: ignore[arg-type]
    for roamer in made:
        roamer.start()
    rig.until(lambda: all(roamer.ready for roamer in made))
    return made


__all__ = ["MILLISECOND", "PORT", "Accounts", "Roamer", "roam"]
