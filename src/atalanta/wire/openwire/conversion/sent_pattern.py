"""Messages of a client that sends the same again but for id, times and body: their header is not converted again.

The patterns of a run of messages together: docs/internals/protocols/openwire.md#repeated-messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from atalanta.message.header_pattern import HeaderPattern, header_pattern
from atalanta.message.message import BYTES, DEFAULT, OBJECT, TEXT
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.conversion.body import core_body
from atalanta.wire.openwire.conversion.nested_values import NestedValues

if TYPE_CHECKING:
    from atalanta.message.message import Message
    from atalanta.wire.openwire.commands.messages import OpenWireMessage
    from atalanta.wire.openwire.conversion.destination import BrokerDestination

# Kinds whose bodies have no part in the properties.
KINDS: Final = (DEFAULT, OBJECT, TEXT, BYTES)
SEQUENCE_MASK: Final = (1 << 34) - 1  # in the lower 8 bytes of a user id (conversion/message_id.py)
HALF_BYTES: Final = 8
NO_VALUES: Final = NestedValues()


class SentPattern:
    """The header of the messages that one object becomes: the decoder gives a repeated command in the same object."""

    def __init__(
        self,
        source: OpenWireMessage,
        target: BrokerDestination,
        header: HeaderPattern,
        user_id: bytes,
        sent_begin: bytes,
    ) -> None:
        self._source = source
        self._target = target
        self._header = header
        self._plain: bool = source.code() == codes.BYTES_MESSAGE and not source.compressed
        self._sent_begin = sent_begin
        self._user_id_high: bytes = user_id[:HALF_BYTES]
        self._user_id_low: i64 = int.from_bytes(user_id[HALF_BYTES:], "big", signed=True) & ~SEQUENCE_MASK

    def covers(self, source: OpenWireMessage, target: BrokerDestination) -> bool:
        """Returns True for the command and the target of the pattern."""
        return source is self._source and target is self._target

    def message(self, source: OpenWireMessage, body_bytes_max: int) -> Message | None:
        """Returns the message of the command, None if its numbers do not fit into the pattern."""
        message_id = source.message_id
        timestamp_ms, expiration_ms = source.timestamp, source.expiration
        if message_id is None or timestamp_ms <= 0 or expiration_ms < 0:
            return None
        number: i64 = message_id.producer_sequence_id
        if not self._header.fits(number) or number > SEQUENCE_MASK:
            return None
        body = source.content
        if not self._plain or body is None:
            _, body = core_body(source, body_bytes_max, NO_VALUES)
        message = self._header.message(
            number, self._user_id_high, self._user_id_low | number, expiration_ms, timestamp_ms, body
        )
        if self._sent_begin:
            message.sent_id = b"%s%d" % (self._sent_begin, number)
        return message


def sent_pattern(
    source: OpenWireMessage, target: BrokerDestination, message: Message, name: str, text: str
) -> SentPattern | None:
    """Returns the pattern of the command that became this message; its id, `text`, is in the property of that name.

    None if the next messages may differ in more than their id, their times and their body.
    """
    message_id, user_id = source.message_id, message.user_id
    if message_id is None or user_id is None or message.kind not in KINDS or source.timestamp <= 0:
        return None
    number = message_id.producer_sequence_id
    shown = str(number)
    low = int.from_bytes(user_id[HALF_BYTES:], "big")
    if number < 0 or not text.endswith(shown) or low & SEQUENCE_MASK != number:
        return None  # an id that is a text, or one whose numbers do not fit
    sent_begin = b""
    if message.sent_id is not None:
        end = shown.encode("ascii")
        if not message.sent_id.endswith(end):
            return None  # a hash of a long one
        sent_begin = message.sent_id[: len(message.sent_id) - len(end)]
    header = header_pattern(message, [name], text[: len(text) - len(shown)], number)
    return None if header is None else SentPattern(source, target, header, user_id, sent_begin)
