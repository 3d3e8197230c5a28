"""A queue read by sequence, repeatably (docs/internals/protocols/log-view.md): for Spark and its like.

Ranges are (start, end]. All calls are repeated by themselves when the connection was lost and came
back; all but `lease` with epoch 0 are idempotent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from atalanta.client.message import ReceivedMessage
from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.client.request import REPEAT
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.log_chunk import LogReadResponse, decode_entries
from atalanta.wire.core.packets.logview import (
    LogAckThrough,
    LogAckThroughResponse,
    LogLease,
    LogLeaseResponse,
    LogLost,
    LogLostResponse,
    LogPlan,
    LogPlanResponse,
    LogPosition,
    LogPositionResponse,
    LogRead,
    LogSeek,
    LogSeekResponse,
    LostRange,
)

if TYPE_CHECKING:
    from atalanta.client.connection import Connection
    from atalanta.wire.core.client.reply import Reply
    from atalanta.wire.core.client.session import ClientSession

CHUNK_BYTES = 1 << 20
NO_LIMIT = -1
Answer = TypeVar("Answer", bound=Packet)


@dataclass(frozen=True)
class Position:
    """Where a queue stands. `first`: lowest live sequence or last + 1; `last`: highest one shown."""

    node_id: str
    incarnation: str
    first: int
    last: int
    messages: int
    bytes: int
    acked_through: int
    first_timestamp_ms: int
    last_timestamp_ms: int


@dataclass(frozen=True)
class Plan:
    """The range (start, end] has `messages` messages of `bytes` bytes."""

    start: int
    end: int
    messages: int
    bytes: int


@dataclass(frozen=True)
class Lease:
    """A group's claim to a queue; every take-over has a higher epoch."""

    epoch: int
    incarnation: str
    acked_through: int


@dataclass(frozen=True)
class Chunk:
    """A part of a range as it travelled: `count` encoded entries. Go on from `next` until `last`."""

    queue: str
    next: int
    last: bool
    count: int
    entries: bytes

    def messages(self) -> Iterator[tuple[int, ReceivedMessage]]:
        """(sequence, message) in order."""
        packet = LogReadResponse(
            correlation=0, next=self.next, last=self.last, count=self.count, entries=self.entries
        )
        for entry in decode_entries(packet):
            message = ReceivedMessage(
                entry.message, self.queue, None, None, entry.delivery_count
            )
            yield entry.sequence, message


class LogView:
    """Errors: Fenced, IncarnationChanged, RangeLost, LogViewUnsupported, QueueDoesNotExist.

    `incarnation` is taken from the first `position` or `lease` if it was not given, and sent with
    every later call, so that a queue made anew under the same name is noticed.
    """

    def __init__(self, connection: Connection, queue: str, incarnation: str = "") -> None:
        self.queue = queue
        self.incarnation = incarnation
        self._connection = connection
        self._name = queue.rpartition("::")[2]

    async def position(self) -> Position:
        """Where the queue stands now; what it shows stays readable until acknowledged through."""
        session = await self._session()
        number = session.next_correlation()
        answer = await self._ask(session, LogPosition(number, self.queue), LogPositionResponse)
        position = Position(
            answer.node_id,
            answer.incarnation,
            answer.first,
            answer.last,
            answer.messages,
            answer.bytes,
            answer.acked_through,
            answer.first_timestamp_ms,
            answer.last_timestamp_ms,
        )
        self.incarnation = self.incarnation or position.incarnation
        return position

    async def plan(
        self, start: int, max_messages: int | None = None, max_bytes: int | None = None
    ) -> Plan:
        """The longest range from `start` within the limits, of at least one message if there is one."""
        session = await self._session()
        packet = LogPlan(
            correlation=session.next_correlation(),
            queue=self.queue,
            incarnation=self.incarnation,
            start=start,
            max_messages=NO_LIMIT if max_messages is None else max_messages,
            max_bytes=NO_LIMIT if max_bytes is None else max_bytes,
        )
        answer = await self._ask(session, packet, LogPlanResponse)
        return Plan(start, answer.end, answer.messages, answer.bytes)

    async def read(
        self,
        start: int,
        end: int,
        selector: str | None = None,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> AsyncIterator[tuple[int, ReceivedMessage]]:
        """(sequence, message) of the range, in order."""
        async for chunk in self.read_raw(start, end, selector, chunk_bytes):
            for pair in chunk.messages():
                yield pair

    async def read_raw(
        self,
        start: int,
        end: int,
        selector: str | None = None,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> AsyncIterator[Chunk]:
        """The range in chunks, still encoded; the next one is on its way while one is worked on."""
        session = await self._session()
        under_way = self.ask_chunk(session, start, end, selector, chunk_bytes)
        while True:
            chunk = await self.chunk(under_way)
            if not chunk.last:
                under_way = self.ask_chunk(session, chunk.next, end, selector, chunk_bytes)
            yield chunk
            if chunk.last:
                return

    def ask_chunk(
        self, session: ClientSession, start: int, end: int, selector: str | None, chunk_bytes: int
    ) -> Reply:
        """Sends the request for one chunk."""
        packet = LogRead(
            correlation=session.next_correlation(),
            queue=self.queue,
            incarnation=self.incarnation,
            start=start,
            end=end,
            max_bytes=chunk_bytes,
            selector=selector,
        )
        reply = session.correlated_request(packet, packet.correlation, REPEAT)
        self._connection.shell.after_call()
        return reply

    async def chunk(self, under_way: Reply) -> Chunk:
        """The answer to ask_chunk."""
        answer = _expect(await self._connection.shell.answer(under_way), LogReadResponse)
        return Chunk(self._name, answer.next, answer.last, answer.count, answer.entries)

    async def ack_through(self, group: str, epoch: int, end: int) -> int:
        """Everything up to `end` is done with, durably; how many messages that were. Fenced: the
        group's lease has another epoch by now.
        """
        session = await self._session()
        number = session.next_correlation()
        packet = LogAckThrough(
            correlation=number,
            queue=self.queue,
            incarnation=self.incarnation,
            group=group,
            epoch=epoch,
            end=end,
        )
        return (await self._ask(session, packet, LogAckThroughResponse)).acked_messages

    async def lease(self, group: str, owner: str, ttl_ms: int, epoch: int = 0) -> Lease:
        """Claims the queue for the group: epoch 0 takes over with a new epoch, else that one is
        renewed; a `ttl_ms` of 0 gives it back.
        """
        session = await self._session()
        number = session.next_correlation()
        packet = LogLease(
            correlation=number,
            queue=self.queue,
            group=group,
            owner=owner,
            ttl_ms=ttl_ms,
            epoch=epoch,
        )
        answer = await self._ask(session, packet, LogLeaseResponse)
        self.incarnation = self.incarnation or answer.incarnation
        return Lease(answer.epoch, answer.incarnation, answer.acked_through)

    async def lost_ranges(self, start: int, end: int) -> list[LostRange]:
        """Parts of (start, end] that left the queue otherwise than by ack_through."""
        session = await self._session()
        number = session.next_correlation()
        packet = LogLost(
            correlation=number, queue=self.queue, incarnation=self.incarnation, start=start, end=end
        )
        return (await self._ask(session, packet, LogLostResponse)).ranges

    async def seek(self, timestamp_ms: int) -> int:
        """The sequence before the first live message with this timestamp or a later one."""
        session = await self._session()
        packet = LogSeek(session.next_correlation(), self.queue, timestamp_ms)
        return (await self._ask(session, packet, LogSeekResponse)).sequence

    async def session(self) -> ClientSession:
        """The session the requests go through."""
        return await self._session()

    async def _session(self) -> ClientSession:
        await self._connection.require_log_view()
        return self._connection.session

    async def _ask(self, session: ClientSession, packet: Packet, kind: type[Answer]) -> Answer:
        correlation: int = packet.correlation  # type: ignore[attr-defined]
        reply = session.correlated_request(packet, correlation, REPEAT)
        return _expect(await self._connection.shell.answer(reply), kind)


def _expect(answer: object, kind: type[Answer]) -> Answer:
    if not isinstance(answer, kind):
        raise ClientError(f"the broker answered with {answer!r}, not with a {kind.__name__}")
    return answer
