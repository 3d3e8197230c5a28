"""Log view: repeatable reads of a queue by sequence, for Spark and similar systems.

The protocol: docs/internals/protocols/log-view.md.

Ranges are (start, end]. Every call is repeated automatically after a reconnect. All calls but `lease` with epoch 0 are
idempotent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, TypeVar

from atalanta.client.log.large_entry import BODY_BYTES_MAX, LargeEntry
from atalanta.message.log_position import Position
from atalanta.message.quick_dataclass import dataclass
from atalanta.wire.core.client.errors import ClientError, RangeLost
from atalanta.wire.core.client.request import REPEAT
from atalanta.wire.core.lost_range import LostRange
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.log_chunk import (
    ColumnChunk,
    LogReadColumnsResponse,
    LogReadResponse,
    decode_entries,
)
from atalanta.wire.core.packets.logview import (
    LogAckThrough,
    LogAckThroughResponse,
    LogBody,
    LogBodyResponse,
    LogDeadLetter,
    LogDeadLetterResponse,
    LogLease,
    LogLeaseResponse,
    LogLost,
    LogLostResponse,
    LogPlan,
    LogPlanResponse,
    LogPosition,
    LogPositionResponse,
    LogQueues,
    LogQueuesResponse,
    LogRead,
    LogReadColumns,
    LogReadLargeResponse,
    LogRetain,
    LogRetainResponse,
    LogSeek,
    LogSeekResponse,
)

if TYPE_CHECKING:
    from atalanta.client.connection import Connection
    from atalanta.client.message import ReceivedMessage
    from atalanta.wire.core.client.reply import Reply
    from atalanta.wire.core.client.session import ClientSession

CHUNK_BYTES = 1 << 20
NO_LIMIT = -1
Answer = TypeVar("Answer", bound=Packet)


@dataclass(frozen=True)
class Plan:
    """A planned range: (start, end] has `messages` messages of `bytes` bytes."""

    start: int
    end: int
    messages: int
    bytes: int


@dataclass(frozen=True)
class Lease:
    """A group's lease of a queue; every takeover has a higher epoch.

    `begun`: the group had acknowledged before. A node of an older version says so of every group.
    """

    epoch: int
    incarnation: str
    acked_through: int
    begun: bool = True


@dataclass(frozen=True)
class Chunk:
    """A received part of a range: `count` encoded entries, or `columns` of them. Continue from `next` until `last`.

    `error` says why the body of the only message is incomplete (a damaged file) or missing (too large: then `unread`);
    else "".
    """

    queue: str
    next: int
    last: bool
    count: int
    entries: bytes
    error: str = ""
    unread: bool = False
    columns: ColumnChunk | None = None

    @property
    def content(self) -> bytes | ColumnChunk:
        """Returns the entries as they came, for columns_of and split_entries."""
        return self.entries if self.columns is None else self.columns

    def messages(self) -> Iterator[tuple[int, ReceivedMessage]]:
        """Yields (sequence, message) in order. Raises ClientError for a message without its whole body."""
        from atalanta.client.message import ReceivedMessage

        entries = self.entries if self.columns is None else self.columns.rows()
        packet = LogReadResponse(
            correlation=0, next=self.next, last=self.last, count=self.count, entries=entries
        )
        for entry in decode_entries(packet):
            if self.error:
                raise ClientError(f"message {entry.sequence} of {self.queue}: {self.error}")
            message = ReceivedMessage(
                entry.message, self.queue, None, None, entry.delivery_count
            )
            yield entry.sequence, message


class LogView:
    """The log view of a queue.

    Errors: Fenced, IncarnationChanged, RangeLost, LogViewUnsupported, QueueDoesNotExist.

    If `incarnation` is not given, the first `position` or `lease` sets it. Every later call sends it, so that a queue
    created again under the same name is detected.
    """

    def __init__(self, connection: Connection, queue: str, incarnation: str = "") -> None:
        self.queue = queue
        self.incarnation = incarnation
        self._connection = connection
        self._name = queue.rpartition("::")[2]

    async def position(self) -> Position:
        """Returns the current position. Visible messages stay readable until they are acknowledged through."""
        session = await self._session()
        number = session.next_correlation()
        answer = await self._ask(session, LogPosition(number, self.queue), LogPositionResponse)
        self.incarnation = self.incarnation or answer.position.incarnation
        return answer.position

    async def plan(
        self, start: int, max_messages: int | None = None, max_bytes: int | None = None
    ) -> Plan:
        """Returns the longest range from `start` within the limits, with at least one message if there is one."""
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
        """Yields (sequence, message) of the range, in order."""
        async for chunk in self.read_raw(start, end, selector, chunk_bytes):
            for pair in chunk.messages():
                yield pair

    async def read_raw(
        self,
        start: int,
        end: int,
        selector: str | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        body_bytes_max: int = BODY_BYTES_MAX,
        by_columns: bool = False,
    ) -> AsyncIterator[Chunk]:
        """Yields the range in encoded chunks. The next chunk is requested before the current one is processed.

        A message of more than 4 MiB is a chunk of its own, read in pieces. A body above `body_bytes_max` is not read;
        with 0 the node sends no bodies at all (an older node those up to 4 MiB). `by_columns` asks for chunks with
        `columns`; an older node, and any for messages with files, sends `entries`.
        """
        chunk_bytes = requested_bytes(chunk_bytes, body_bytes_max)
        session = await self._session()
        under_way = self.ask_chunk(session, start, end, selector, chunk_bytes, by_columns)
        while True:
            chunk = await self.chunk(under_way, body_bytes_max)
            if not chunk.last:
                under_way = self.ask_chunk(session, chunk.next, end, selector, chunk_bytes, by_columns)
            yield chunk
            if chunk.last:
                return

    def ask_chunk(
        self,
        session: ClientSession,
        start: int,
        end: int,
        selector: str | None,
        chunk_bytes: int,
        by_columns: bool = False,
    ) -> Reply:
        """Sends the request for one chunk; `chunk_bytes` as requested_bytes returns them."""
        kind = LogReadColumns if by_columns and self._connection.log_columns else LogRead
        packet = kind(
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

    async def chunk(self, under_way: Reply, body_bytes_max: int = BODY_BYTES_MAX) -> Chunk:
        """Returns the answer to ask_chunk, with the whole body of a message that comes in pieces."""
        answer = await self._connection.shell.answer(under_way)
        if isinstance(answer, LogReadLargeResponse):
            return await self._large_chunk(answer, body_bytes_max)
        if isinstance(answer, LogReadColumnsResponse):
            found = answer.chunk
            return Chunk(self._name, answer.next, answer.last, found.count, b"", columns=found)
        answer = _expect(answer, LogReadResponse)
        return Chunk(self._name, answer.next, answer.last, answer.count, answer.entries)

    async def _large_chunk(self, answer: LogReadLargeResponse, body_bytes_max: int) -> Chunk:
        entry = LargeEntry(answer, body_bytes_max)
        session = await self._session()
        while entry.wanted:
            packet = LogBody(
                correlation=session.next_correlation(),
                queue=self.queue,
                incarnation=self.incarnation,
                sequence=entry.sequence,
                offset=entry.read,
                max_bytes=entry.wanted,
            )
            try:
                entry.add((await self._ask(session, packet, LogBodyResponse)).data)
            except RangeLost:  # the message has left: the next read tells whether that is an error
                return Chunk(self._name, entry.sequence - 1, False, 0, b"")
        return Chunk(self._name, answer.next, answer.last, 1, entry.encoded(), entry.error, entry.unread)

    async def ack_through(self, group: str, epoch: int, end: int) -> int:
        """Acknowledges every message up to `end`, durably, and returns their number.

        Raises Fenced if the group's lease has another epoch now.
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
        """Leases the queue for the group. Epoch 0 takes over with a new epoch; any other epoch is renewed.

        A `ttl_ms` of 0 releases the lease.
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
        begun = answer.acked_through >= 0
        acked_through = answer.acked_through if begun else -1 - answer.acked_through
        return Lease(answer.epoch, answer.incarnation, acked_through, begun)

    async def dead_letter(self, group: str, epoch: int, sequence: int, why: str) -> None:
        """Moves a message that the reader cannot use to the dead-letter address, durably; the next reads lack it.

        Raises Fenced like ack_through, and ClientError if no queue takes dead letters: then the message stays.
        """
        session = await self._session()
        packet = LogDeadLetter(
            correlation=session.next_correlation(),
            queue=self.queue,
            incarnation=self.incarnation,
            group=group,
            epoch=epoch,
            sequence=sequence,
            why=why,
        )
        await self._ask(session, packet, LogDeadLetterResponse)

    async def retain(
        self, group: str, epoch: int, age_ms: int = -1, max_bytes: int = -1, replay_from: int = -1
    ) -> int:
        """Keeps acknowledged messages for a replay: for `age_ms`, and up to `max_bytes` (0: no such limit, -1: as it
        is). Both 0 release them.

        `replay_from`: the group reads behind that sequence again (-1: no replay); RangeLost if it is not retained.
        Returns the sequence behind which messages can be read (again).
        """
        session = await self._session()
        number = session.next_correlation()
        packet = LogRetain(
            number, self.queue, self.incarnation, group, epoch, age_ms, max_bytes, replay_from
        )
        return (await self._ask(session, packet, LogRetainResponse)).released_through

    async def lost_ranges(self, start: int, end: int) -> list[LostRange]:
        """Returns parts of (start, end] whose messages left the queue by other means than ack_through."""
        session = await self._session()
        number = session.next_correlation()
        packet = LogLost(
            correlation=number, queue=self.queue, incarnation=self.incarnation, start=start, end=end
        )
        return (await self._ask(session, packet, LogLostResponse)).ranges

    async def seek(self, timestamp_ms: int) -> int:
        """Returns the sequence before the first live message with this timestamp or a later one."""
        session = await self._session()
        packet = LogSeek(session.next_correlation(), self.queue, timestamp_ms)
        return (await self._ask(session, packet, LogSeekResponse)).sequence

    async def queues(self) -> list[str]:
        """Returns the queues of the node that match this view's name, a pattern such as `orders.#`, sorted.

        Only queues with a log view that the user may consume; wildcards as in the node's `<wildcard-addresses>`.
        """
        session = await self._session()
        packet = LogQueues(session.next_correlation(), self.queue)
        return (await self._ask(session, packet, LogQueuesResponse)).names

    async def session(self) -> ClientSession:
        """Returns the session of the requests."""
        return await self._session()

    async def _session(self) -> ClientSession:
        await self._connection.require_log_view()
        return self._connection.session

    async def _ask(self, session: ClientSession, packet: Packet, kind: type[Answer]) -> Answer:
        correlation: int = packet.correlation  # type: ignore[attr-defined]
        reply = session.correlated_request(packet, correlation, REPEAT)
        return _expect(await self._connection.shell.answer(reply), kind)


def requested_bytes(chunk_bytes: int, body_bytes_max: int) -> int:
    """Returns the limit of a LOG_READ; it is negative for messages without bodies."""
    return chunk_bytes if body_bytes_max > 0 else -chunk_bytes


def _expect(answer: object, kind: type[Answer]) -> Answer:
    if not isinstance(answer, kind):
        raise ClientError(f"the broker answered with {answer!r}, not with a {kind.__name__}")
    return answer
