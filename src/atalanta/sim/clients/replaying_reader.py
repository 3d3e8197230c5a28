"""A reader of the log view whose queue retains what it has acknowledged, and that asks for the past again."""

from __future__ import annotations

from typing import Final

from atalanta.kernel import RANGE_LOST
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.client import then
from atalanta.sim.clients.readers import GROUP, LEASE_MS, LogReader
from atalanta.sim.host import BEHIND_NS
from atalanta.sim.world.machine_clock import SKEWS_NS
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client import FAIL, ClientError, Reply
from atalanta.wire.core.packets import (
    LogEntry,
    LogLeaseResponse,
    LogRead,
    LogReadResponse,
    LogRetain,
    Packet,
    decode_entries,
)

# (ms, bytes), 0 for none. A node releases by size alone in ranges of 1 MiB, which these worlds do not reach.
LIMITS: Final = ((2_000, 0), (8_000, 0), (60_000, 0), (3_000, 2_000), (60_000, 3_000), (0, 2_000))
REPLAY_SHARE: Final = 0.3  # of the steps with nothing unfinished
REPLAYED_MAX: Final = 3  # messages that a replay reads at once
REPLAY_PAUSE_NS_MAX: Final = 1_500_000_000  # between two reads of a replay: limits are exceeded meanwhile
# The node keeps times in ms. What it acknowledged by a clock that was set back is older by that for the next life. A
# node with several machines has their clocks: one may stand, and a successor's be ahead.
SLACK_NS: Final = 2_000_000 - min(BEHIND_NS)
MACHINES_SLACK_NS: Final = SLACK_NS + max(SKEWS_NS) + 5 * SECOND


class ReplayingReader(LogReader):
    """Reads a queue as LogReader does, and between its batches the past: by a read, or by a replay of its group.

    `past` has all messages that were read, by sequence: key and size. `replay`: the sequence up to which the group has
    read again, part of the checkpoint; -1 without a replay. Checked is that the past comes again complete and in
    order, or is refused because the limits allow it. What a replay has not acknowledged stays during the lease.
    """

    def __init__(
        self, world: World, network: Network, name: str, target: str, ledger: Ledger, queue: str, slack_ns: int
    ) -> None:
        super().__init__(world, network, name, target, ledger, queue)
        self.slack_ns = slack_ns
        self.age_ms, self.bytes_max = self.random.choice(LIMITS)
        self.past: dict[int, tuple[str, int]] = {}
        self.acknowledgements: list[tuple[int, int]] = []  # (time of the request, end)
        self.limited = False
        self.replay = -1
        self.settled = False  # no request for a replay, or of one, is without an answer
        self.lease_asked = 0
        self.leased_at = 0
        self.range: tuple[int, int] = (0, 0)  # that is read again
        self.again: list[str] = []
        self.replayed = 0

    # -- the lease ------------------------------------------------------------------------------
    def _lease(self) -> None:
        self.lease_asked = self.world.now
        super()._lease()

    def _leased(self, packet: LogLeaseResponse) -> None:
        position = packet.acked_through if packet.acked_through >= 0 else -1 - packet.acked_through
        if position < (self.replay if self.replay >= 0 else self.acknowledged):
            raise Violation(f"{self.target}: {self.queue} was set back to {position}")
        if position > self.replay and self._pins():
            raise Violation(f"{self.target}: the replay of {self.queue} went on from {self.replay} to {position}")
        self.leased_at = self.lease_asked
        self.settled = True
        if self.replay >= 0:
            self._continue_at(position)
        super()._leased(packet)

    def _pins(self) -> bool:
        """Returns True if nothing behind the replay may be released: the lease is certainly active."""
        return self.replay >= 0 and self.settled and self.world.now - self.leased_at < LEASE_MS * 1_000_000

    # -- steps ----------------------------------------------------------------------------------
    def _take(self, entries: list[LogEntry]) -> None:
        super()._take(entries)
        for entry in entries:
            self.past[entry.sequence] = (str(entry.message.properties.get("key")), entry.message.size)

    def _acknowledge(self, epoch: int, end: int) -> Reply:
        if epoch == self.epoch:
            self.acknowledgements.append((self.world.now, end))
        return super()._acknowledge(epoch, end)

    def _step(self) -> None:
        if not self.limited:
            self._call(LogRetain(self._next(), self.queue, "", GROUP, self.epoch, self.age_ms, self.bytes_max))
        elif self.replay >= 0:
            ends = [each for each in sorted(self.past) if self.replay < each <= self.acknowledged]
            end = ends[: self.random.randint(1, REPLAYED_MAX)][-1] if ends else self.acknowledged
            self._read_past(self.replay, end)
        elif self._idle() and self.random.random() < REPLAY_SHARE:
            start = self.random.choice([each for each in self.past if each <= self.acknowledged]) - 1
            if self.random.random() < 0.5:
                self._read_past(start, self.acknowledged)
            else:
                self.replay = start
                self.settled = False
                self._call(LogRetain(self._next(), self.queue, "", GROUP, self.epoch, -1, -1, start))
        else:
            super()._step()

    def _idle(self) -> bool:
        return self.planned is None and 0 < self.acknowledged == self.committed

    def _next(self) -> int:
        return self.session.next_correlation()

    def _call(self, packet: LogRetain) -> None:
        then(self._send(packet, packet.correlation), self._retained)

    def _send(self, packet: Packet, number: int) -> Reply:
        return self.session.correlated_request(packet, number, FAIL)

    def _retained(self, reply: Reply) -> None:
        if reply.error is None:
            self.limited = True
            self.settled = True
            self._later()
        elif not self.cut_short(reply.error):
            start, self.replay = self.replay, -1
            self._refused_past(reply.error, start)

    # -- the past -------------------------------------------------------------------------------
    def _read_past(self, start: int, end: int) -> None:
        self.range = (start, end)
        self.again = []
        self._read_on(start)

    def _read_on(self, start: int) -> None:
        number = self._next()
        packet = LogRead(number, self.queue, "", start, self.range[1], self.random.randint(200, 2_000))
        then(self._send(packet, number), lambda reply: self._read_again(start, reply))

    def _read_again(self, start: int, reply: Reply) -> None:
        packet = reply.value
        if reply.error is not None:
            if not self.cut_short(reply.error):
                self._refused_past(reply.error, start)
            return
        assert isinstance(packet, LogReadResponse)
        self.again.extend(str(each.message.properties.get("key")) for each in decode_entries(packet))
        if not packet.last:
            self._read_on(packet.next)
            return
        start, end = self.range
        expected = [self.past[each][0] for each in sorted(self.past) if start < each <= end]
        if self.again != expected:
            raise Violation(
                f"{self.target}: {self.queue} holds {self.again} in {self.range}, which was read as {expected}",
                next((key for key in expected if key not in self.again), ""),
            )
        self.replayed += len(expected)
        if self.replay >= 0:
            self.settled = False
            then(super()._acknowledge(self.epoch, end), self._advanced)
        else:
            self._later()

    def _advanced(self, reply: Reply) -> None:
        if reply.error is None:
            self.settled = True
            self._continue_at(self.range[1])
            self.later(self.random.randint(1, REPLAY_PAUSE_NS_MAX), self._lease)
        elif not self.cut_short(reply.error):
            raise Violation(f"{self.name} at {self.target}: {reply.error.text}")

    def _continue_at(self, position: int) -> None:
        """Goes on with the replay at that sequence, or ends it."""
        self.replay = position if position < self.acknowledged else -1

    def _refused_past(self, error: ClientError, start: int) -> None:
        """Checks that what is gone was not promised any more."""
        if error.code != RANGE_LOST:
            raise Violation(f"{self.name} at {self.target}: {error.text} (code {error.code})")
        behind = [each for each in sorted(self.past) if each > start]
        acknowledged_at = next(at for at, end in self.acknowledgements if end >= behind[0])
        kept_until = acknowledged_at + self.age_ms * 1_000_000 - self.slack_ns
        old = self.age_ms > 0 and self.world.now >= kept_until
        many = 0 < self.bytes_max <= 2 * sum(self.past[each][1] for each in behind)
        if not (old or many) or self._pins():
            key = self.past[behind[0]][0]
            raise Violation(f"{self.target}: {self.queue} has not retained {behind[0]} ({key}): {error.text}", key)
        self.replay = -1
        self._later()
