"""Clients of the virtual world that behave as an Artemis JMS client with reconnection does, and count what they see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atalanta.message.message import Message
from atalanta.sim.nodes import PASSWORD, PORT, USER
from atalanta.sim.world.world import SECOND
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import (
    REASON_REDIRECT,
    CheckForFailover,
    DisconnectV3,
    NullResponse,
    Ping,
)
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets.producer import (
    CreateProducer,
    ProducerCredits,
    RequestProducerCredits,
)
from atalanta.wire.core.packets.session import CreateSession, SessionStart
from atalanta.wire.core.packets.topology import ClusterTopology, SubscribeTopologyV2
from atalanta.wire.core.packets.transaction import Commit
from tests.cluster.cluster_rig import Client, Rig

WINDOW_BYTES = 10_000
MESSAGE_BYTES = 300
MILLISECOND = SECOND // 1_000


class Accounts:
    """Counts what all clients of a test did together."""

    def __init__(self) -> None:
        self.confirmed: dict[bytes, bool] = {}
        self.unsure: dict[bytes, bool] = {}  # the node stopped before it answered
        self.received: dict[bytes, int] = {}
        self.attempts: dict[bytes, int] = {}  # the highest delivery count seen
        self.redirects: int = 0
        self.errors: int = 0  # calls that a redirect cut short
        self.cut_short: int = 0  # transactions, likewise

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

    It goes where a redirect says (unless it does not obey), else to the next of `names` when its node leaves. A deaf
    one goes on as if the redirect had not reached it yet.
    """

    default_address: str | None = None  # by which a client of Atalanta tells where it wants to be

    def __init__(
        self,
        rig: Rig,
        name: str,
        target: str,
        names: list[str],
        accounts: Accounts,
        queue: str = "orders",
        period_ns: int = 200 * MILLISECOND,
        work_ns: int = 5 * MILLISECOND,
        window_bytes: int = WINDOW_BYTES,
        credit_window: int = 0,
        batch: int = 0,
        port: int = PORT,
        xa: bool = False,
    ) -> None:
        super().__init__(rig.world, rig.network, name, target)
        self.names = names
        self.accounts = accounts
        self.queue = queue
        self.period_ns = period_ns
        self.work_ns = work_ns
        self.retry_ns = 50 * MILLISECOND
        self.was_at: str | None = None  # node id
        self.reconnects = True
        self.under_way: bytes | None = None
        self.work: list[ReceiveMessage] = []
        self.sent = 0
        self.sending = True
        self.window_bytes = window_bytes  # that its consumer gets ahead
        self.credit_window = credit_window  # 0: it sends without asking for credit
        self.xa = xa
        self.port = port  # of the door that it knows
        self.batch = batch  # messages of a transaction, 0: it makes none
        self.uncommitted = 0
        self.credits = 0
        self.asked = False
        self.out_of_credit = False
        self.obeys = True
        self.deaf = False
        self.heard_goodbye = False

    # -- connection -----------------------------------------------------------------------------
    def _dial(self) -> None:
        self.network.dial(self, f"{self.life}", self.target, self.port)

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
        name = f"{self.name}/{conn}"
        made = CreateSession(
            name=name,
            session_channel=10,
            version=136,
            user=USER,
            password=PASSWORD,
            xa=self.xa,
            auto_commit_sends=not self.batch,
            default_address=self.default_address,
        )
        self.send(made, 1)

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
            elif isinstance(packet, ReceiveMessage | NullResponse | ProducerCredits):
                self.on_packet(packet)

    def told(self, conn: int, packet: DisconnectV3) -> None:
        if packet.reason == REASON_REDIRECT:
            assert packet.target is not None
            self.accounts.redirects += 1
            self.heard_goodbye = True
            if self.deaf:
                return
            self.accounts.errors += self.under_way is not None
            self.accounts.cut_short += self.uncommitted > 0
            if self.obeys:
                self.target, self.port = packet.target.host, packet.target.port
        else:
            self.target = self.names[(self.names.index(self.target) + 1) % len(self.names)]
        self.network.close(conn, "told to go")
        self.on_closed(conn, "told to go")

    def on_lost(self) -> None:
        self.work = []
        self.uncommitted = 0
        if self.under_way is not None:
            self.accounts.unsure[self.under_way] = True
            self.under_way = None

    # -- work -----------------------------------------------------------------------------------
    def on_ready(self) -> None:
        self.send(SessionStart())
        self.send(CreateProducer(1, self.queue))
        self.send(CreateConsumer(consumer_id=0, queue=self.queue))
        self.send(FlowToken(0, self.window_bytes))
        self.credits = 0
        self.asked = self.out_of_credit = False
        self.ask_credit()
        self.send_later()

    def send_later(self) -> None:
        conn = self.conn
        if self.period_ns:
            self.world.at(self.period_ns, lambda: self.send_one(conn))

    def ask_credit(self) -> None:
        """Half a window ahead, as the JMS client does."""
        if self.credit_window and self.credits < self.credit_window // 2 and not self.asked:
            self.asked = True
            self.send(RequestProducerCredits(self.credit_window, self.queue))

    def send_one(self, conn: int) -> None:
        if self.conn != conn or not self.sending:
            return
        if self.credit_window:
            if self.credits < MESSAGE_BYTES:
                self.out_of_credit = True
                return
            self.credits -= MESSAGE_BYTES
            self.ask_credit()
        self.sent += 1
        self.under_way = f"{self.name}/{self.sent}".encode()
        message = Message.create(
            self.queue, self.under_way, 4, True, self.world.now // 1_000_000, 4
        )
        self.send(SendMessage(message, requires_response=True, correlation=self.sent, sender_id=1))

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, NullResponse):
            if packet.correlation == self.sent and self.under_way is not None:
                self.accounts.confirmed[self.under_way] = True
                self.under_way = None
                self.uncommitted += self.batch > 0
                if self.batch and self.uncommitted == self.batch:
                    self.send(Commit())
                else:
                    self.send_later()
            elif self.batch and self.uncommitted == self.batch:
                self.uncommitted = 0
                self.send_later()
            else:
                self.answers.append(packet.correlation)
        elif isinstance(packet, ProducerCredits):
            self.asked = False
            self.credits += packet.credits
            if self.out_of_credit:
                self.out_of_credit = False
                self.send_one(self.conn)
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

    def drop(self) -> None:
        """Its connection breaks."""
        conn = self.conn
        self.network.close(conn, "broken")
        self.on_closed(conn, "broken")

    def publish_silently(self, address: str, body: bytes) -> None:
        """Without asking for an answer."""
        message = Message.create(address, body, 4, True, self.world.now // 1_000_000, 4)
        self.send(SendMessage(message, sender_id=1))


def roam(
    rig: Rig,
    target: str,
    count: int,
    accounts: Accounts,
    before: Callable[[Roamer], None] | None = None,
    **options: Any,
) -> list[Roamer]:
    """`count` clients at that node, ready; `before` is told each before it connects."""
    names = [host.name for host in rig.hosts]
    made = []
    for _ in range(count):
        rig.clients += 1
        made.append(Roamer(rig, f"r{rig.clients}", target, names, accounts, **options))
    for roamer in made:
        if before is not None:
            before(roamer)
        roamer.start()
    rig.until(lambda: all(roamer.ready for roamer in made))
    return made
