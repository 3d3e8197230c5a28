"""Connections of a simulated Spark driver or task to one node, with the requests of the log view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from atalanta.client import Chunk, Lease, LostRange, Plan, Position
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.world.world import SECOND
from atalanta.spark.errors import (
    GatewayError,
    LeaseTaken,
    NodeUnavailable,
    QueueMissing,
    QueueRecreated,
    RangeIncomplete,
)
from atalanta.spark.gateway.gateway import GatewayMember
from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.request import FAIL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.log_chunk import LogReadResponse
from atalanta.wire.core.packets.logview import (
    LogAckThrough,
    LogLease,
    LogLost,
    LogPlan,
    LogPosition,
    LogRead,
)
from tests.sim.spark.connection import NodeConnection, Request
from tests.sim.spark.fibers import here

# Codes of docs/internals/protocols/log-view.md.
ERRORS: Final[dict[int, type[GatewayError]]] = {
    100: QueueMissing, 200: LeaseTaken, 201: QueueRecreated, 202: RangeIncomplete,
}  # fmt: skip
CONNECT_S: Final = 2.0


class LogConnection(NodeConnection):
    """A connection whose requests fail with it, also those that wait."""

    def on_lost(self) -> None:
        waiting, self.waiting = self.waiting, []
        super().on_lost()
        for _, _, done in waiting:
            done(NodeUnavailable(f"{self.target} is away"))

    def log_request(self, packet: Packet) -> Request:
        try:
            return (yield self._log_call(packet))
        except ClientError as error:
            kind = ERRORS.get(error.code)
            if kind is None:
                raise Violation(f"{self.name} at {self.target}: {error.text} ({error.code})") from error
            return kind(error.text, error.code)

    def _log_call(self, packet: Any) -> Reply:
        packet.correlation = self.session.next_correlation()
        return self.session.correlated_request(packet, packet.correlation, FAIL)


class LogGateway:
    """The gateway of a fiber over a connection: a lost connection is the end of the gateway, too."""

    def __init__(self, connection: LogConnection) -> None:
        self.connection = connection
        self._wait_until_ready()
        self.losses = connection.losses

    def _wait_until_ready(self) -> None:
        """Waits for the connection as a dial does. Raises NodeUnavailable."""
        fiber, connection = here(), self.connection
        world = connection.world
        until = world.now + int(CONNECT_S * SECOND)
        while not connection.ready:
            if world.now >= until:
                raise NodeUnavailable(f"{connection.target} does not answer")
            world.at(SECOND // 20, fiber.wake())
            fiber.wait()

    def topology(self) -> Sequence[GatewayMember]:
        self._check()
        view = self.connection.view.items()
        return [GatewayMember(node_id, f"{host}:{port}") for node_id, (host, port) in view]

    def position(self, queue: str) -> Position:
        found: Position = self._log(LogPosition(0, queue)).position
        return found

    def plan(
        self, queue: str, incarnation: str, start: int, max_messages: int, max_bytes: int
    ) -> Plan:
        answer = self._log(LogPlan(0, queue, incarnation, start, max_messages, max_bytes))
        return Plan(start, answer.end, answer.messages, answer.bytes)

    def read(
        self, queue: str, incarnation: str, start: int, end: int, max_bytes: int, *more: object
    ) -> Iterator[Chunk]:
        last = False
        while not last:
            size = here().process.world.random("chunks").randint(200, 2_000)
            answer = self._log(LogRead(0, queue, incarnation, start, end, min(size, max_bytes)))
            assert isinstance(answer, LogReadResponse)
            start, last = answer.next, answer.last
            yield Chunk(queue, start, last, answer.count, answer.entries)

    def ack_through(self, queue: str, incarnation: str, group: str, epoch: int, end: int) -> int:
        answer = self._log(LogAckThrough(0, queue, incarnation, group, epoch, end))
        return int(answer.acked_messages)

    def lease(self, queue: str, group: str, owner: str, ttl_ms: int, epoch: int) -> Lease:
        answer = self._log(LogLease(0, queue, group, owner, ttl_ms, epoch))
        return Lease(answer.epoch, answer.incarnation, answer.acked_through)

    def lost_ranges(
        self, queue: str, incarnation: str, start: int, end: int
    ) -> Sequence[LostRange]:
        found: Sequence[LostRange] = self._log(LogLost(0, queue, incarnation, start, end)).ranges
        return found

    def close(self) -> None:
        self.losses = -1

    def _log(self, packet: Packet) -> Any:
        return self._ask("log_request", packet)

    def _ask(self, method: str, *arguments: object) -> Any:
        self._check()
        fiber = here()
        self.connection.ask(method, arguments, fiber.wake())
        answer = fiber.wait()
        if isinstance(answer, GatewayError):
            raise answer
        return answer

    def _check(self) -> None:
        connection = self.connection
        if self.losses != connection.losses or not connection.ready:
            raise NodeUnavailable(f"{connection.target} is away")
