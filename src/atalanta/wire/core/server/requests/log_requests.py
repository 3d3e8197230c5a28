"""The server of the log view's packets (docs/internals/protocols/log-view.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from atalanta.kernel.endpoint import Reply
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError, Postponed
from atalanta.kernel.log.chunk import READ_BYTES_MAX
from atalanta.kernel.log.log_dead_letters import LogDeadLetters
from atalanta.kernel.memory.large_body import LargeBody, LargeReader, next_crc
from atalanta.kernel.queue.delivery.bridge_origin import shown
from atalanta.kernel.registry.queues import parse_filter
from atalanta.message.fqqn import join_fqqn
from atalanta.message.internal_headers import ORIGIN
from atalanta.message.message import with_body
from atalanta.wire.core.lost_range import LostRange
from atalanta.wire.core.packet_types import LOG_READ_RESP
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.log_chunk import (
    CHUNK_HEADER_BYTES,
    ENTRY_HEADER_BYTES,
    ChunkWriter,
    ColumnChunkWriter,
    message_bytes,
    write_chunk_header,
    write_entry,
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
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.log.chunk import LogChunk
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message
    from atalanta.wire.core.server.session import CoreSession


class DeferredReply(Reply):
    """Sends its packet when the kernel reports that the result is durable."""

    def __init__(self, session: CoreSession, packet: Packet) -> None:
        self.session = session
        self.packet = packet

    def done(self, token: int) -> None:
        self.session.reply(self.packet)

    def failed(self, token: int, error: BrokerError) -> None:
        self.session.failed(token, error)

    def deliver(self, consumer: QueueConsumer, reference: Reference) -> int:
        raise ProtocolError("a log-view reply has no consumers")


def answer_log(session: CoreSession, now: int, packet: Packet) -> None:
    """Answers one request; refusals have its correlation."""
    correlation = 0
    session.connection.pinned = True  # positions and batches are of this node
    try:
        if isinstance(
            packet,
            LogPosition | LogPlan | LogRead | LogBody | LogAckThrough | LogLease | LogLost | LogSeek | LogRetain
            | LogDeadLetter,
        ):
            correlation = packet.correlation
            queue = session.broker.queue_registry.find(packet.queue)
            session.session.check("consume", join_fqqn(queue.spec.address, queue.name))
        if isinstance(packet, LogRead):
            _read(session, now, packet)
        elif isinstance(packet, LogBody):
            _body(session, packet)
        elif isinstance(packet, LogPosition):
            position = session.broker.log_views.position(packet.queue)
            session.reply(LogPositionResponse(correlation, position))
        elif isinstance(packet, LogPlan):
            end, messages, size = session.broker.log_views.plan(
                packet.queue,
                packet.incarnation,
                packet.start,
                packet.max_messages,
                packet.max_bytes,
            )
            session.reply(
                LogPlanResponse(correlation=correlation, end=end, messages=messages, bytes=size)
            )
        elif isinstance(packet, LogAckThrough):
            _ack_through(session, packet)
        elif isinstance(packet, LogLease):
            _lease(session, now, packet)
        elif isinstance(packet, LogRetain):
            _retain(session, packet)
        elif isinstance(packet, LogDeadLetter):
            _dead_letter(session, now, packet)
        elif isinstance(packet, LogLost):
            _lost(session, packet)
        elif isinstance(packet, LogQueues):
            correlation = packet.correlation
            session.reply(LogQueuesResponse(correlation, _queues(session, packet.pattern)))
        elif isinstance(packet, LogSeek):
            sequence = session.broker.log_views.seek(packet.queue, packet.timestamp_ms)
            session.reply(LogSeekResponse(correlation, sequence))
    except Postponed:
        raise
    except BrokerError as error:
        session.failed(correlation, error)


def _queues(session: CoreSession, pattern: str) -> list[str]:
    """Returns the names of the matching queues that the user may consume."""
    kernel = session.session
    permissions = kernel.services.permissions
    return [
        queue.name
        for queue in session.broker.log_views.matching(pattern)
        if permissions.allows(kernel.identity, "consume", join_fqqn(queue.spec.address, queue.name))
    ]


def _read(session: CoreSession, now: int, packet: LogRead) -> None:
    chunk = session.broker.log_views.read(
        packet.queue, packet.incarnation, packet.start, packet.end, abs(packet.max_bytes),
        parse_filter(packet.selector), packet.max_bytes >= 0,
    )  # fmt: skip
    if chunk.large:
        session.reply(_large(chunk.references[0], packet.correlation, chunk.next, chunk.last))
        return
    for reference in chunk.references:
        if chunk.bodies and reference.message.large is not None:
            LargeChunk(session, packet.correlation, chunk).go_on()
            return
    if isinstance(packet, LogReadColumns):
        _send_columns(session, now, packet.correlation, chunk)
    else:
        _send(session, packet.correlation, chunk)


def _send_columns(session: CoreSession, now: int, correlation: int, chunk: LogChunk) -> None:
    """Writes the answer to LOG_READ_COLUMNS. Megabytes are copied once, from the messages to the frame."""
    moved = session.broker.origins.seen
    bodies = chunk.bodies
    writer = ColumnChunkWriter()
    for reference in chunk.references:
        message = shown(reference.message) if moved else reference.message
        writer.add(reference.sequence, reference.delivery_count, message, bodies)
    frame = writer.frame(session.channel, correlation, chunk.next, chunk.last)
    session.connection.write_long(now, frame)


def _send(session: CoreSession, correlation: int, chunk: LogChunk) -> None:
    """Writes the answer to LOG_READ into the connection's output: megabytes that are copied once."""
    moved = session.broker.origins.seen
    messages = [
        shown(reference.message) if moved else reference.message for reference in chunk.references
    ]
    size: i64 = CHUNK_HEADER_BYTES
    for message in messages:
        size += ENTRY_HEADER_BYTES + message_bytes(message, chunk.bodies)
    out = session.connection.start_frame(LOG_READ_RESP, session.channel, size)
    write_chunk_header(out, correlation, chunk.next, chunk.last, len(messages))
    for index, message in enumerate(messages):
        reference = chunk.references[index]
        write_entry(out, reference.sequence, reference.delivery_count, message, chunk.bodies)


def _large(reference: Reference, correlation: int, next: int, last: bool) -> LogReadLargeResponse:
    """Returns the answer that announces a message whose body is read in pieces."""
    message = reference.message
    body = message.large
    writer = ChunkWriter()
    writer.add(reference.sequence, reference.delivery_count, _with_body(message, b""))
    return LogReadLargeResponse(
        correlation=correlation,
        next=next,
        last=last,
        size=len(message.body) if body is None else body.size,
        crc=-1 if body is None else body.crc,
        entry=writer.getvalue(),
    )


def _with_body(message: Message, body: bytes) -> Message:
    """Returns a copy with another body, as readers see it."""
    copy = with_body(message, body)
    copy.remove_property(ORIGIN)
    return copy


def _body(session: CoreSession, packet: LogBody) -> None:
    reference = session.broker.log_views.message_at(
        packet.queue, packet.incarnation, packet.sequence
    )
    message = reference.message
    body = message.large
    size = len(message.body) if body is None else body.size
    if packet.offset < 0 or packet.offset > size:
        text = f"message {packet.sequence} of {packet.queue} has {size} bytes, none at {packet.offset}"
        raise BrokerError(ILLEGAL_STATE, text)
    wanted = min(packet.max_bytes if packet.max_bytes > 0 else READ_BYTES_MAX, READ_BYTES_MAX)
    wanted = min(wanted, size - packet.offset)
    if body is None:
        data = message.body[packet.offset : packet.offset + wanted]
        session.reply(LogBodyResponse(packet.correlation, data))
    else:
        session.broker.large.hold(body, 1)
        piece = BodyPiece(session, packet.correlation, body)
        session.broker.large.read(body, packet.offset, wanted, piece)


def _ack_through(session: CoreSession, packet: LogAckThrough) -> None:
    reply = LogAckThroughResponse(packet.correlation, 0)
    reply.acked_messages = session.broker.log_views.ack_through(
        packet.queue, packet.incarnation, packet.group, packet.epoch, packet.end,
        DeferredReply(session, reply), packet.correlation,
    )  # fmt: skip


def _lease(session: CoreSession, now: int, packet: LogLease) -> None:
    reply = LogLeaseResponse(
        correlation=packet.correlation, epoch=packet.epoch, incarnation="", acked_through=0
    )
    queue = session.broker.log_views.queue_for(packet.queue, "")
    reply.incarnation = queue.incarnation
    reply.acked_through = queue.log.reader_position()
    deferred = DeferredReply(session, reply)
    held = session.broker.log_views.lease(
        now, packet.queue, packet.group, packet.owner, packet.ttl_ms * 1_000_000, packet.epoch,
        deferred, packet.correlation,
    )  # fmt: skip
    reply.epoch = held.epoch
    if not held.has_position:
        reply.acked_through = -1 - reply.acked_through


def _retain(session: CoreSession, packet: LogRetain) -> None:
    reply = LogRetainResponse(packet.correlation, 0)
    session.broker.log_views.retain(
        packet.queue, packet.incarnation, packet.group, packet.epoch, packet.age_ms,
        packet.max_bytes, packet.replay_from, DeferredReply(session, reply), packet.correlation,
    )  # fmt: skip
    queue = session.broker.log_views.queue_for(packet.queue, "")
    reply.released_through = queue.log.released_through()


def _dead_letter(session: CoreSession, now: int, packet: LogDeadLetter) -> None:
    reply = DeferredReply(session, LogDeadLetterResponse(packet.correlation))
    LogDeadLetters(session.broker.log_views, session.broker.dead_letters).move(
        now, packet.queue, packet.incarnation, packet.group, packet.epoch, packet.sequence, packet.why,
        reply, packet.correlation,
    )  # fmt: skip


def _lost(session: CoreSession, packet: LogLost) -> None:
    ranges = session.broker.log_views.lost_ranges(
        packet.queue, packet.incarnation, packet.start, packet.end
    )
    session.reply(
        LogLostResponse(
            packet.correlation, [LostRange(start, end, why) for start, end, why in ranges]
        )
    )


class BodyPiece(LargeReader):
    """The answer with a piece of a body, at most READ_BYTES_MAX."""

    def __init__(self, session: CoreSession, correlation: int, body: LargeBody) -> None:
        self.session = session
        self.correlation = correlation
        self.body = body
        self.large = session.broker.large

    def read(self, now: int, data: bytes) -> None:
        self.large.release(self.body)
        self.session.reply(LogBodyResponse(self.correlation, data))


class LargeChunk(LargeReader):
    """A chunk with large messages. Bodies are in memory until the answer, at most READ_BYTES_MAX.

    A damaged body is left to be read in pieces: the reader gets what is left of it.
    """

    def __init__(self, session: CoreSession, correlation: int, chunk: LogChunk) -> None:
        self.session = session
        self.correlation = correlation
        self.chunk = chunk
        self.writer = ChunkWriter()
        self.place: int = 0
        self.held: list[LargeBody] = []
        for reference in chunk.references:
            body = reference.message.large
            if body is not None:
                session.broker.large.hold(body, 1)
                self.held.append(body)

    def go_on(self) -> None:
        """Writes the messages up to the next one whose file must be read."""
        references = self.chunk.references
        while self.place < len(references):
            reference = references[self.place]
            body = reference.message.large
            if body is not None:
                self.session.broker.large.read(body, 0, body.size, self)
                return
            message = shown(reference.message)
            self.writer.add(reference.sequence, reference.delivery_count, message)
            self.place += 1
        self._reply(self.chunk.next, self.chunk.last)

    def read(self, now: int, data: bytes) -> None:
        reference = self.chunk.references[self.place]
        body = reference.message.large
        if body is None or len(data) < body.size or next_crc(0, data) != body.crc:
            if body is not None:
                queue = reference.queue.name
                large = self.session.broker.large
                large.damaged(body.file, body.size, int(reference.message.id), queue, len(data))
            if self.place > 0:
                self._reply(self.chunk.references[self.place - 1].sequence, False)
            else:
                last = self.chunk.last and len(self.chunk.references) == 1
                self._end()
                sequence = self.chunk.next if last else reference.sequence
                self.session.reply(_large(reference, self.correlation, sequence, last))
            return
        whole = _with_body(reference.message, data)
        self.writer.add(reference.sequence, reference.delivery_count, whole)
        self.place += 1
        self.go_on()

    def _reply(self, next: int, last: bool) -> None:
        """Sends the messages written so far."""
        self._end()
        self.session.reply(self.writer.response(self.correlation, next, last))

    def _end(self) -> None:
        for body in self.held:
            self.session.broker.large.release(body)
        self.held = []
