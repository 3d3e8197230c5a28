"""A reader of the log view that restarts like a Spark driver, and is sometimes outlived by an older self."""

from __future__ import annotations

from typing import Final

from atalanta.sim.clients import SimClient
from atalanta.sim.ledger import Ledger, Violation
from atalanta.sim.network import Network
from atalanta.sim.world import SECOND, World
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_chunk import LogReadResponse, decode_entries
from atalanta.wire.core.packets_connection import ExceptionResponse
from atalanta.wire.core.packets_logview import (
    LogAckThrough,
    LogAckThroughResponse,
    LogLease,
    LogLeaseResponse,
    LogPlan,
    LogPlanResponse,
    LogRead,
)

GROUP: Final = "reader"
FENCED: Final = 200
LEASE: Final = 1
ACKNOWLEDGE: Final = 2
PLAN: Final = 3
READ: Final = 4
STALE: Final = 5
PLAN_MESSAGES_MAX: Final = 12
HASTE_MAX: Final = 32  # times as much at once, of a reader that is behind


class LogReader(SimClient):
    """Reads a queue by ranges: plan, write the offset down, read, commit, and only then acknowledge.

    `planned` and `committed` are its checkpoint: they survive a kill. After a restart the planned range is read again
    and must hold the same messages. Now and then it acknowledges a range it has not committed under an epoch of its
    earlier life, as a driver that was believed dead would: that must be refused.
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

    def on_ready(self) -> None:
        self.send(
            LogLease(
                correlation=LEASE,
                queue=self.queue,
                group=GROUP,
                owner=f"{self.name}/{self.life}",
                ttl_ms=10_000,
            )
        )

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, LogLeaseResponse):
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
            self.keys.extend(
                str(entry.message.properties.get("key")) for entry in decode_entries(packet)
            )
            if packet.last:
                self._commit()
            else:
                self._read(packet.next)
        elif isinstance(packet, LogAckThroughResponse):
            if packet.correlation == STALE:
                raise Violation(f"{self.target}: an old epoch acknowledged {self.planned}")
            self.acknowledged = self.committed
            self._step()
        elif isinstance(packet, ExceptionResponse):
            self._refused(packet)

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
            self.send(
                LogAckThrough(
                    correlation=STALE,
                    queue=self.queue,
                    incarnation="",
                    group=GROUP,
                    epoch=self.old_epoch,
                    end=self.planned[1],
                )
            )

    def _refused(self, packet: ExceptionResponse) -> None:
        if packet.correlation == STALE and packet.code == FENCED:
            return
        if self.epoch == 0 and packet.code == FENCED:
            life, session = self.life, self.session
            self.world.at(SECOND, lambda: self._lease_again(life, session))
            return
        raise Violation(f"{self.name} at {self.target}: {packet.message} (code {packet.code})")

    def _lease_again(self, life: int, session: int) -> None:
        if self.life == life and self.session == session and self.ready:
            self.on_ready()

    def _step(self) -> None:
        """What comes next: an unfinished range, an acknowledgement that is due, or a new plan."""
        if self.planned is not None:
            self._read(self.planned[0])
        elif self.acknowledged < self.committed:
            self.send(
                LogAckThrough(
                    correlation=ACKNOWLEDGE,
                    queue=self.queue,
                    incarnation="",
                    group=GROUP,
                    epoch=self.epoch,
                    end=self.committed,
                )
            )
        else:
            self.asked_messages = self.random.randint(1, PLAN_MESSAGES_MAX) * self.haste
            self.send(
                LogPlan(
                    correlation=PLAN,
                    queue=self.queue,
                    incarnation="",
                    start=self.committed,
                    max_messages=self.asked_messages,
                )
            )

    def _hurry(self, messages: int) -> None:
        """As a rate limit shared by backlog: who gets all he asked for asks for more the next time."""
        full = messages >= self.asked_messages
        self.haste = min(2 * self.haste, HASTE_MAX) if full else 1

    def _read(self, start: int) -> None:
        assert self.planned is not None
        if start == self.planned[0]:
            self.keys = []
        chunk_bytes = self.random.randint(200, 2_000) * self.haste
        self.send(
            LogRead(
                correlation=READ,
                queue=self.queue,
                incarnation="",
                start=start,
                end=self.planned[1],
                max_bytes=chunk_bytes,
            )
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
        self.ledger.commit_read(self.target, self.queue, self.keys)
        del self.first_look[self.planned]
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
        life, session = self.life, self.session
        self.world.at(self.random.randint(1, 400) * 1_000_000, lambda: self._go_on(life, session))

    def _go_on(self, life: int, session: int) -> None:
        """Renew the lease; its answer leads on."""
        if self.life == life and self.session == session and self.ready:
            self.send(
                LogLease(
                    correlation=LEASE,
                    queue=self.queue,
                    group=GROUP,
                    owner=f"{self.name}/{self.life}",
                    ttl_ms=10_000,
                    epoch=self.epoch,
                )
            )

    def on_lost(self) -> None:
        self.old_epoch = self.epoch or self.old_epoch
        self.epoch = 0
