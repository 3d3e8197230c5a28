"""Message ids of OpenWire as text, and ids for messages of other protocols."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from atalanta.wire.openwire.commands.identifiers import MessageId, ProducerId

NUMBER_DIGITS_MAX: Final = 18
# Clients keep the numbers of a producer in an int (ARTEMIS-3776): the upper part is the number of the producer.
LOW_BITS: Final = 31
LOW_MASK: Final = (1 << LOW_BITS) - 1


def id_text(message_id: MessageId) -> str:
    """Returns the id as JMSMessageID shows it (MessageId.toString)."""
    text = message_id.text_view
    if text:
        return text if text.startswith("ID:") else f"ID:{text}"
    producer = message_id.producer_id
    if producer is None:
        return f"ID:{message_id.producer_sequence_id}"
    return f"{producer.connection_id}:{producer.session_id}:{producer.value}:{message_id.producer_sequence_id}"


def parsed_id(text: str, delivery: int) -> MessageId | None:
    """Returns the id of such a text; None unless three numbers are at its end.

    `delivery`: the broker's number of the delivery.
    """
    parts = text.rsplit(":", 3)
    if len(parts) != 4:
        return None
    numbers: list[int] = []
    for part in parts[1:]:
        digits = part[1:] if part.startswith("-") else part
        if not (digits.isascii() and digits.isdigit()) or len(digits) > NUMBER_DIGITS_MAX:
            return None
        numbers.append(int(part))
    return MessageId(None, ProducerId(parts[0], numbers[1], numbers[0]), numbers[2], delivery)


def made_id(node_id: str, number: int, user_id: bytes | None, delivery: int) -> MessageId:
    """Returns the id of a message that another protocol sent, with the text of its UUID if it has one."""
    producer = ProducerId(f"ID:{node_id}", number >> LOW_BITS, 0)
    text = None if user_id is None else f"ID:{uuid_text(user_id)}"
    return MessageId(text, producer, number & LOW_MASK, delivery)


def with_text(message_id: MessageId, text: str) -> MessageId:
    """Returns the id with a text that is no id of activemq-client."""
    return MessageId(text, message_id.producer_id, message_id.producer_sequence_id, message_id.broker_sequence_id)


def same_message(one: MessageId, other: MessageId) -> bool:
    """Returns True if both name the same message, whatever number the broker gave its delivery."""
    return (
        one.producer_sequence_id == other.producer_sequence_id
        and one.producer_id == other.producer_id
        and (one.text_view or "") == (other.text_view or "")
    )


def uuid_of(text: str) -> bytes:
    """Returns 16 bytes of an id, always the same: what CORE clients see as the UUID of the message."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def uuid_text(value: bytes) -> str:
    """Returns the usual form of a UUID."""
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
