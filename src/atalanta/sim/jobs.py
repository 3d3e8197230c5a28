"""The jobs of simulated clients: a producer, a consumer, and a reader of the log view that restarts like a Spark driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.kernel.message import Message
from atalanta.sim.clients import SimClient
from atalanta.sim.ledger import Ledger, Violation
from atalanta.sim.network import Network
from atalanta.sim.nodes import ORDERS, PRICES
from atalanta.sim.world import SECOND, World
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_chunk import LogReadResponse, decode_entries
from atalanta.wire.core.packets_connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets_consumer import CreateConsumer, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets_logview import (
    LogAckThrough,
    LogAckThroughResponse,
    LogLease,
    LogLeaseResponse,
    LogPlan,
    LogPlanResponse,
    LogRead,
)
from atalanta.wire.core.packets_message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets_query import QueueQueryResponseV3
from atalanta.wire.core.packets_session import SessionStart

WINDOW: Final = 8
GROUP: Final = "reader"


def nobody_knows(name: str) -> int:
    return 0


class Producer(SimClient):
    """Sends numbered durable messages to orders and prices; after a loss it re-sends what was not confirmed, same ids.

    `knows_alerts(node)` is not 0 while that node has a binding for alerts, and another number in each of its lives:
    a node that has just started routes to other nodes' subscriptions only once it has heard of them (as in Artemis).
    """

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger, total: int
    ) -> None:
        super().__init__(world, network, name, target)
        self.ledger = ledger
        self.total = total
        self.next = 0
        self.open: dict[int, bool] = {}
        self.knows_alerts: Callable[[str], int] = nobody_knows
        self.known_at: dict[int, int] = {}
        self.random = world.random(f"producer/{name}")
        self.pace_ns = self.random.randint(1, 40) * 1_000_000

    def done(self) -> bool:
        return self.next >= self.total and not self.open

    def on_ready(self) -> None:
        for number in self.open:
            self._transmit(number)
        self._fill(self.life)

    def _fill(self, life: int) -> None:
        if not self.ready or self.life != life:
            return
        if self.next < self.total and len(self.open) < WINDOW:
            number = self.next
            self.next += 1
            self.open[number] = True
            self.ledger.sending(f"{self.name}/{number}", number % 2 == 0, number % 6 == 0)
            self.known_at[number] = self.knows_alerts(self.target)
            self._transmit(number)
        self.world.at(self.random.randint(1, self.pace_ns), lambda: self._fill(life))

    def _transmit(self, number: int) -> None:
        key = f"{self.name}/{number}"
        address = PRICES if number % 2 == 0 else ORDERS
        body = key.encode() + bytes(self.random.randint(0, 200))
        message = Message.create(address, body, 4, True, self.world.now // 1_000_000, 4)
        message.properties.put("key", key)
        message.properties.put("alert", number % 6 == 0)
        message.properties.put("_AMQ_DUPL_ID", key)
        message.properties_changed()
        self.send(SendMessage(message, True, number, 1))

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, NullResponse):
            number = packet.correlation
            if self.open.pop(number, None):
                known = self.known_at.pop(number)
                self.ledger.confirm(
                    f"{self.name}/{number}", known > 0 and known == self.knows_alerts(self.target)
                )
        elif isinstance(packet, ExceptionResponse):
            raise Violation(f"{self.name}: {packet.message}")

    def on_lost(self) -> None:
        return None


class Consumer(SimClient):
    """Takes messages of one queue and acknowledges each, asking for an answer; it can move to another node."""

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger, queue: str
    ) -> None:
        super().__init__(world, network, name, target)
        self.ledger = ledger
        self.queue = queue
        self.answers: list[str] = []
        self.created = False
        self.random = world.random(f"consumer/{name}")
        self.slowness_ns = self.random.choice((0, 1_000_000, 30_000_000))

    def on_ready(self) -> None:
        self.created = False
        self.send(SessionStart())
        self.send(CreateConsumer(0, self.queue, None, False, True, 0))
        self.send(FlowToken(0, 4_000))

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, ReceiveMessage):
            key = str(packet.message.properties.get("key"))
            self.ledger.deliver(self.queue, key)
            life, conn = self.life, self.conn
            message_id, cost = packet.message.id, packet.message.size
            self.world.at(
                self.random.randint(0, self.slowness_ns),
                lambda: self._acknowledge(life, conn, key, message_id, cost),
            )
        elif isinstance(packet, NullResponse):
            self.ledger.settle(self.queue, self.answers.pop(0))
        elif isinstance(packet, QueueQueryResponseV3):
            self.created = True
        elif isinstance(packet, ExceptionResponse):
            if self.created:
                raise Violation(f"{self.name}: {packet.message}")
            life, conn = self.life, self.conn
            self.world.at(SECOND, lambda: self._create_again(life, conn))

    def _create_again(self, life: int, conn: int) -> None:
        if self.life == life and self.conn == conn and self.ready:
            self.on_ready()

    def _acknowledge(self, life: int, conn: int, key: str, message_id: int, cost: int) -> None:
        if self.life == life and self.conn == conn:
            self.answers.append(key)
            self.send(IndividualAcknowledge(0, message_id, True))
            self.send(FlowToken(0, cost + 40))

    def on_lost(self) -> None:
        self.answers = []

    def move(self, target: str) -> None:
        """Close here, come up there: what is unacknowledged is redelivered."""
        self.kill()
        self.target = target
        self.start()


class LogReader(SimClient):
    """Reads a queue by ranges like a Spark driver: plan, write the offset down, read, commit, and only then acknowledge.

    `offsets` (planned) and `committed` are its checkpoint: they survive a kill. After a restart the planned range
    is read again and must hold the same messages.
    """

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger, queue: str
    ) -> None:
        super().__init__(world, network, name, target)
        self.ledger = ledger
        self.queue = queue
        self.planned: tuple[int, int] | None = None
        self.committed: int = 0
        self.acknowledged: int = 0
        self.first_look: dict[tuple[int, int], list[str]] = {}
        self.keys: list[str] = []
        self.epoch: int = 0
        self.random = world.random(f"reader/{name}")
        self.starts = 0

    def on_ready(self) -> None:
        self.starts += 1
        self.send(LogLease(1, self.queue, GROUP, f"{self.name}/{self.life}", 10_000, 0))

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, LogLeaseResponse):
            self.epoch = packet.epoch
            self._step()
        elif isinstance(packet, LogPlanResponse):
            if packet.end > self.committed:
                self.planned = (self.committed, packet.end)
                self._read(self.committed)
            else:
                self._later()
        elif isinstance(packet, LogReadResponse):
            self.keys.extend(
                str(entry.message.properties.get("key")) for entry in decode_entries(packet)
            )
            if packet.last:
                self._commit()
            else:
                self._read(packet.next)
        elif isinstance(packet, LogAckThroughResponse):
            self.acknowledged = self.committed
            self._step()
        elif isinstance(packet, ExceptionResponse):
            self._refused(packet)

    def _refused(self, packet: ExceptionResponse) -> None:
        if self.epoch == 0 and packet.code == 200:
            life, conn = self.life, self.conn
            self.world.at(SECOND, lambda: self._lease_again(life, conn))
            return
        raise Violation(f"{self.name} at {self.target}: {packet.message} (code {packet.code})")

    def _lease_again(self, life: int, conn: int) -> None:
        if self.life == life and self.conn == conn and self.ready:
            self.on_ready()

    def _step(self) -> None:
        """What comes next: an unfinished range, an acknowledgement that is due, or a new plan."""
        if self.planned is not None:
            self._read(self.planned[0])
        elif self.acknowledged < self.committed:
            self.send(LogAckThrough(2, self.queue, "", GROUP, self.epoch, self.committed))
        else:
            self.send(LogPlan(3, self.queue, "", self.committed, self.random.randint(1, 12), -1))

    def _read(self, start: int) -> None:
        assert self.planned is not None
        if start == self.planned[0]:
            self.keys = []
        self.send(
            LogRead(4, self.queue, "", start, self.planned[1], self.random.randint(200, 2_000))
        )

    def _commit(self) -> None:
        """The range was read whole: the sink takes it. It must be what an earlier, interrupted reading saw."""
        assert self.planned is not None
        seen = self.first_look.get(self.planned)
        if seen is not None and seen != self.keys:
            raise Violation(
                f"{self.target}: range {self.planned} read {self.keys}, at first {seen}"
            )
        self.first_look[self.planned] = self.keys
        if self.random.random() < 0.15:
            self._crash_before_commit()
            return
        self.ledger.commit_read(self.target, self.keys)
        self.committed = self.planned[1]
        self.planned = None
        self._later()

    def _crash_before_commit(self) -> None:
        life = self.life
        self.world.at(0, lambda: self._restart(life))

    def _restart(self, life: int) -> None:
        if self.life == life and self.up:
            self.kill()
            self.start()

    def _later(self) -> None:
        life, conn = self.life, self.conn
        self.world.at(self.random.randint(1, 400) * 1_000_000, lambda: self._go_on(life, conn))

    def _go_on(self, life: int, conn: int) -> None:
        """Renew the lease; its answer leads on."""
        if self.life == life and self.conn == conn and self.ready:
            self.send(
                LogLease(1, self.queue, GROUP, f"{self.name}/{self.life}", 10_000, self.epoch)
            )

    def on_lost(self) -> None:
        self.epoch = 0
