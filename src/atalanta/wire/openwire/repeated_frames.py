"""The messages and acknowledgements that a client sends again and again, decoded by comparison with earlier ones.

A frame that matches the pattern of an earlier one becomes the command of that one, with its own numbers, times and
content. So a command is valid until the next frame: who keeps one copies it.

The patterns of a run of messages together: docs/internals/protocols/openwire.md#repeated-messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from atalanta.wire.openwire.commands.deliveries import MessageAck
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.encoding.frame_pattern import (
    CONTENT_BYTES_MAX,
    KEPT_BYTES_MAX,
    MESSAGE_FIELDS,
    FramePattern,
)

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.identifiers import MessageId
    from atalanta.wire.openwire.encoding.structure import Command, DataStructure
    from atalanta.wire.openwire.wire_format import WireFormat

# Of one connection: it has producers and consumers of several destinations.
PATTERNS_MAX: Final = 4
# Frames in sequence that match nothing; from then on one of so many becomes a pattern.
MISSES_MAX: Final = 16
# Positions among the fields of a message.
COMMAND_ID: Final = 0
SEQUENCE: Final = 1
BROKER_SEQUENCE: Final = 2
EXPIRATION: Final = 3
TIMESTAMP: Final = 4
ID_FIELDS: Final = 2  # of each id in an acknowledgement


class RepeatedFrame:
    """The pattern of a frame, and its command."""

    def __init__(self, command: Command, pattern: FramePattern) -> None:
        self.command = command
        self.pattern = pattern

    def take(self) -> None:
        """Puts the fields of the frame that has just matched into the command."""
        raise NotImplementedError


class RepeatedMessage(RepeatedFrame):
    """A message."""

    def __init__(self, command: OpenWireMessage, message_id: MessageId, pattern: FramePattern) -> None:
        super().__init__(command, pattern)
        self._message = command
        self._id = message_id

    def take(self) -> None:
        pattern = self.pattern
        message_id = self._id
        message_id.producer_sequence_id = int(pattern.number(SEQUENCE))
        message_id.broker_sequence_id = int(pattern.number(BROKER_SEQUENCE))
        message = self._message
        message.command_id = pattern.command_id()
        message.expiration = int(pattern.number(EXPIRATION))
        message.timestamp = int(pattern.number(TIMESTAMP))
        message.content = pattern.content()


class RepeatedAck(RepeatedFrame):
    """An acknowledgement of the messages from one id to another, or of one message."""

    def __init__(self, command: MessageAck, ids: list[MessageId], pattern: FramePattern) -> None:
        super().__init__(command, pattern)
        self._ids = ids

    def take(self) -> None:
        pattern = self.pattern
        self.command.command_id = pattern.command_id()
        at = COMMAND_ID + 1
        for message_id in self._ids:
            message_id.producer_sequence_id = int(pattern.number(at))
            message_id.broker_sequence_id = int(pattern.number(at + 1))
            at += ID_FIELDS
        pattern.content()


class RepeatedFrames:
    """The patterns of one connection."""

    def __init__(self) -> None:
        self._known: list[RepeatedFrame] = []
        self._misses: int = 0
        self._cache_changes: int = 0

    def find(self, format: WireFormat, data: bytes, start: i64, end: i64) -> Command | None:
        """Returns the command of a frame that matches a pattern."""
        if self._known and format.read_cache_changes() != self._cache_changes:
            self._known.clear()
        for each in self._known:
            if each.pattern.matches(data, start, end):
                self._misses = 0
                each.take()
                return each.command
        return None

    def learn(self, format: WireFormat, command: DataStructure, data: bytes, start: i64, end: i64) -> None:
        """Keeps the pattern of a frame that was decoded without a change of the cache."""
        if not isinstance(command, (OpenWireMessage, MessageAck)) or end - start > CONTENT_BYTES_MAX:
            return
        self._misses += 1
        if self._misses > MISSES_MAX and self._misses % MISSES_MAX:
            return
        found = _repeated(command, FramePattern(data[start:end], format.variable_fields(data, start, end)))
        if found is None or found.pattern.kept_bytes > KEPT_BYTES_MAX:
            return
        self._cache_changes = format.read_cache_changes()
        if len(self._known) == PATTERNS_MAX:
            self._known.pop(0)
        self._known.append(found)


def _repeated(command: OpenWireMessage | MessageAck, pattern: FramePattern) -> RepeatedFrame | None:
    """Returns None for a command without a body, or without ids."""
    if isinstance(command, OpenWireMessage):
        message_id = command.message_id
        if message_id is None or pattern.names[1:] != MESSAGE_FIELDS:
            return None
        return RepeatedMessage(command, message_id, pattern)
    ids = [each for each in (command.first_message_id, command.last_message_id) if each is not None]
    if not ids or len(pattern.names) != COMMAND_ID + 1 + ID_FIELDS * len(ids):
        return None
    return RepeatedAck(command, ids, pattern)
