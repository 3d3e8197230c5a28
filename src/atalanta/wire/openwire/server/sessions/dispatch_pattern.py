"""The deliveries of one sender's messages to a consumer: the frame of one is that of another but for a few fields.

The patterns of a run of messages together: docs/internals/protocols/openwire.md#repeated-messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from atalanta.message.header_pattern import HeaderPattern, header_pattern
from atalanta.message.message import COMPRESSED
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.conversion.body import openwire_body
from atalanta.wire.openwire.conversion.sent_message import DUPLICATE_ID, MESSAGE_ID
from atalanta.wire.openwire.encoding.frame_pattern import MESSAGE_FIELDS

if TYPE_CHECKING:
    from librt.strings import BytesWriter

    from atalanta.message.message import Message
    from atalanta.wire.openwire.commands.identifiers import MessageId, ProducerId
    from atalanta.wire.openwire.conversion.delivered_message import DeliveredMessage
    from atalanta.wire.openwire.encoding.frame_pattern import FramePattern
    from atalanta.wire.openwire.wire_format import WireFormat

# Of one consumer: several producers send to its queue.
PATTERNS_MAX: Final = 4
MISSES_MAX: Final = 16  # in sequence; from then on one of so many deliveries becomes a pattern


class DispatchPattern:
    """The first delivery of a message with a body. `removals` of the write cache: the frame has its indexes."""

    def __init__(
        self,
        header: HeaderPattern,
        frame: FramePattern,
        producer_id: ProducerId,
        code: int,
        compressed: bool,
        removals: int,
    ) -> None:
        self.header = header
        self.producer_id = producer_id
        self.removals = removals
        self._frame = frame
        self._code = code
        self._plain = code == codes.BYTES_MESSAGE and not compressed  # the body needs no conversion

    def write(
        self, format: WireFormat, out: BytesWriter, message: Message, body: bytes, message_id: MessageId
    ) -> bool:
        """Writes the delivery. Returns False, and writes nothing, if it does not fit into the pattern."""
        if self._plain:
            content: bytes | None = body or None
        else:
            converted = openwire_body(message, body)
            content = None if converted.failure or converted.code != self._code else converted.content
        if content is None:
            return False
        return format.write_by(
            self._frame,
            out,
            message_id.producer_sequence_id,
            message_id.broker_sequence_id,
            message.expiration,
            message.timestamp,
            content,
        )


class DispatchPatterns:
    """The patterns of one destination of a consumer."""

    def __init__(self) -> None:
        self._known: list[DispatchPattern] = []
        self._misses: int = 0
        self.number: i64 = 0

    def find(self, format: WireFormat, message: Message) -> DispatchPattern | None:
        """Returns the pattern of a message; then `number` is that of the message at its producer."""
        for each in self._known:
            number = each.header.number_of(message)
            if number >= 0 and each.removals == format.write_cache_removals():
                self._misses = 0
                self.number = number
                return each
        return None

    def forget(self, pattern: DispatchPattern) -> None:
        """Removes a pattern that the deliveries do not fit any more, as their numbers have grown."""
        self._known.remove(pattern)

    def wants(self) -> bool:
        """Returns True if the delivery that matches no pattern is to become one."""
        self._misses += 1
        return self._misses <= MISSES_MAX or self._misses % MISSES_MAX == 0

    def learn(self, format: WireFormat, frame: bytes, message: Message, made: DeliveredMessage) -> None:
        """Keeps the pattern of a delivery that was written as this frame."""
        message_id = made.message_id
        if message_id is None or message_id.producer_id is None or message_id.text_view or made.content is None:
            return
        if made.reply_to is not None or made.correlation_id is not None:
            return  # they depend on what the node knows of other clients
        producer = message_id.producer_id
        prefix = f"{producer.connection_id}:{producer.session_id}:{producer.value}:"
        names = [name for name in (MESSAGE_ID, DUPLICATE_ID) if message.has_property(name)]
        header = header_pattern(message, names, prefix, message_id.producer_sequence_id)
        pattern = format.pattern(frame)
        if header is None or pattern is None or pattern.names != MESSAGE_FIELDS:
            return
        compressed = message.has_property(COMPRESSED)  # by a CORE client
        found = DispatchPattern(header, pattern, producer, made.code(), compressed, format.write_cache_removals())
        if len(self._known) == PATTERNS_MAX:
            self._known.pop(0)
        self._known.append(found)
