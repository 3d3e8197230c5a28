"""A reader of the log view that restarts like a Spark driver. Sometimes an earlier instance of it is still active."""

from __future__ import annotations

from typing import Final

from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.client import SimClient, then
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client import FAIL, ClientError, Reply
from atalanta.wire.core.packets import (
    LogAckThrough,
    LogAckThroughResponse,
    LogEntry,
    LogLease,
    LogLeaseResponse,
    LogPlan,
    LogPlanResponse,
    LogRead,
    LogReadResponse,
    Packet,
    decode_entries,
)

GROUP: Final = "reader"
LEASE_MS: Final = 10_000
FENCED: Final = 200
PLAN_MESSAGES_MAX: Final = 12
HASTE_MAX: Final = 32  # factor of the messages planned at once by a reader with a backlog


class LogReader(SimClient):
    """Reads a queue by ranges: plans, stores the offset, reads, commits, and only then acknowledges.

    `planned` and `committed` are its checkpoint, which survives a kill. After a restart the planned range is read
    again and must hold the same messages. Sometimes the reader acknowledges an uncommitted range under an epoch of
    its earlier life, like a driver that was believed dead. The node must refuse that.
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
        self.incarnation: str = ""
        self.first_look: dict[tuple[int, int], list[str]] = {}
        self.keys: list[str] = []
        self.epoch: int = 0
        self.old_epoch: int = 0
        self.asked_messages: int = 0
        self.haste: int = 1
        self.random = world.random(f"reader/{name}")

    def on_session(self) -> None:
        self._lease()

    def on_resumed(self) -> None:
        self._lease()

    def _lease(self) -> None:
        """Requests a lease, or extends its own; the answer starts the next step."""
        number = self.session.next_correlation()
        owner = f"{self.name}/{self.life}"
        self._ask(LogLease(number, self.queue, GROUP, owner, LEASE_MS, self.epoch), number)

    def _ask(self, packet: Packet, number: int) -> None:
        reply = self.session.correlated_request(packet, number, FAIL)
        then(reply, self._answered)

    def _answered(self, reply: Reply) -> None:
        packet = reply.value
        if reply.error is not None:
            self._refused(reply.error)
        elif isinstance(packet, LogLeaseResponse):
            self._leased(packet)
        elif isinstance(packet, LogPlanResponse):
            self._hurry(packet.messages)
            if packet.end > self.committed:
                self.planned = (self.committed, packet.end)
                self._acknowledge_as_before()
                self._read(self.committed)
            else:
                self._later()
        elif isinstance(packet, LogReadResponse):
            self._take(decode_entries(packet))
            if packet.last:
                self._commit()
            else:
                self._read(packet.next)
        elif isinstance(packet, LogAckThroughResponse):
            self.acknowledged = self.committed
            self._step()

    def _take(self, entries: list[LogEntry]) -> None:
        self.keys.extend(str(entry.message.properties.get("key")) for entry in entries)

    def _leased(self, packet: LogLeaseResponse) -> None:
        if self.epoch == 0 and packet.epoch <= self.old_epoch:
            raise Violation(f"{self.target}: epoch {packet.epoch} after {self.old_epoch}")
        if self.incarnation and packet.incarnation != self.incarnation:
            raise Violation(f"{self.target}: {self.queue} is another queue after a restart")
        self.incarnation = packet.incarnation
        self.epoch = packet.epoch
        if packet.acked_through > self.committed:
            raise Violation(
                f"{self.target}: {self.queue} is acknowledged through {packet.acked_through}, only"
                f" {self.committed} was committed"
            )
        self._step()

    def _acknowledge_as_before(self) -> None:
        if self.old_epoch and self.planned is not None and self.random.random() < 0.1:
            then(self._acknowledge(self.old_epoch, self.planned[1]), self._stale)

    def _acknowledge(self, epoch: int, end: int) -> Reply:
        number = self.session.next_correlation()
        packet = LogAckThrough(number, self.queue, "", GROUP, epoch, end)
        return self.session.correlated_request(packet, number, FAIL)

    def _stale(self, reply: Reply) -> None:
        if reply.error is None:
            raise Violation(f"{self.target}: an old epoch acknowledged {self.planned}")
        if reply.error.code != FENCED and not self.cut_short(reply.error):
            raise Violation(f"{self.name} at {self.target}: {reply.error.text}")

    def _refused(self, error: ClientError) -> None:
        if self.cut_short(error):
            return
        if self.epoch == 0 and error.code == FENCED:
            self.later(SECOND, self._lease)
            return
        raise Violation(f"{self.name} at {self.target}: {error.text} (code {error.code})")

    def _step(self) -> None:
        """Makes the next call: for an unfinished range, for an acknowledgement that is due, or for a new plan."""
        if self.planned is not None:
            self._read(self.planned[0])
        elif self.acknowledged < self.committed:
            then(self._acknowledge(self.epoch, self.committed), self._answered)
        else:
            self.asked_messages = self.random.randint(1, PLAN_MESSAGES_MAX) * self.haste
            number = self.session.next_correlation()
            self._ask(
                LogPlan(number, self.queue, "", self.committed, self.asked_messages, -1), number
            )

    def _hurry(self, messages: int) -> None:
        """Adapts the rate to the backlog: a reader that got all messages it asked for asks for more the next time."""
        full = messages >= self.asked_messages
        self.haste = min(2 * self.haste, HASTE_MAX) if full else 1

    def _read(self, start: int) -> None:
        assert self.planned is not None
        if start == self.planned[0]:
            self.keys = []
        chunk_bytes = self.random.randint(200, 2_000) * self.haste
        number = self.session.next_correlation()
        self._ask(LogRead(number, self.queue, "", start, self.planned[1], chunk_bytes), number)

    def _commit(self) -> None:
        """Commits a completely read range. An earlier, interrupted read must have returned the same messages."""
        assert self.planned is not None
        seen = self.first_look.get(self.planned)
        if seen is not None and seen != self.keys:
            raise Violation(
                f"{self.target}: range {self.planned} read {self.keys}, at first {seen}"
            )
        self.first_look[self.planned] = self.keys
        if self.random.random() < 0.15:
            self.restart()  # before the commit
            return
        self.ledger.commit_read(self.target, self.queue, self.keys)
        del self.first_look[self.planned]
        self.committed = self.planned[1]
        self.planned = None
        self._later()

    def _later(self) -> None:
        self.later(self.random.randint(1, 400) * 1_000_000, self._lease)

    def on_lost(self) -> None:
        self.old_epoch = self.epoch or self.old_epoch
        self.epoch = 0
