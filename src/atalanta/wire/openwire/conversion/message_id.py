"""Message ids of OpenWire as text, and ids for messages of other protocols."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from atalanta.wire.openwire.commands.identifiers import MessageId, ProducerId

NUMBER_DIGITS_MAX: Final = 18
PRODUCERS_MAX: Final = 1_000  # that one connection keeps
PREFIX_CHARACTERS_MAX: Final = 256  # of the id of a producer that is kept
# Clients keep the numbers of a producer in an int (ARTEMIS-3776): the upper part is the number of the producer.
LOW_BITS: Final = 31
LOW_MASK: Final = (1 << LOW_BITS) - 1


class IdTexts:
    """The ids of messages as text. It knows the producer of the last ones, since the next has usually the same."""

    def __init__(self) -> None:
        self._producer: ProducerId | None = None
        self._prefix: str = ""
        self._digest: bytes = b""
        self._producers: dict[str, ProducerId] = {}

    def text(self, message_id: MessageId) -> str:
        """Returns the same as `id_text`."""
        if message_id.text_view or not self._knows(message_id.producer_id):
            return id_text(message_id)
        return f"{self._prefix}{message_id.producer_sequence_id}"

    def uuid(self, message_id: MessageId) -> bytes:
        """Returns 16 bytes of an id, always the same: what CORE clients see as the UUID of the message."""
        if message_id.text_view or not self._knows(message_id.producer_id):
            return sha256(id_text(message_id).encode("utf-8", "surrogatepass")).digest()[:16]
        return self._digest + message_id.producer_sequence_id.to_bytes(8, "big", signed=True)

    def _knows(self, producer: ProducerId | None) -> bool:
        """Returns False without a producer."""
        if producer is None:
            return False
        if producer is not self._producer:
            self._producer = producer
            self._prefix = f"{producer.connection_id}:{producer.session_id}:{producer.value}:"
            self._digest = sha256(self._prefix.encode("utf-8", "surrogatepass")).digest()[:8]
        return True

    def parsed(self, text: str, delivery: int) -> MessageId | None:
        """Returns the same as `parsed_id`."""
        end = text.rfind(":") + 1
        prefix = text[:end]
        producer = self._producers.get(prefix)
        if producer is None:
            found = parsed_id(text, delivery)
            if found is not None and found.producer_id is not None:
                if len(self._producers) >= PRODUCERS_MAX:
                    self._producers.clear()
                if end <= PREFIX_CHARACTERS_MAX:
                    self._producers[prefix] = found.producer_id
            return found
        number = number_of(text[end:])
        return None if number is None else MessageId(None, producer, number, delivery)


def number_of(text: str) -> int | None:
    """Returns the number at the end of an id, None for another text."""
    digits = text[1:] if text.startswith("-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > NUMBER_DIGITS_MAX:
        return None
    return int(text)


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
        number = number_of(part)
        if number is None:
            return None
        numbers.append(number)
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
        and _same_producer(one.producer_id, other.producer_id)
        and (one.text_view or "") == (other.text_view or "")
    )


def _same_producer(one: ProducerId | None, other: ProducerId | None) -> bool:
    """Compares the fields one by one, which needs no tuples: every acknowledgement comes here."""
    if one is None or other is None:
        return one is other
    return (
        one.value == other.value and one.session_id == other.session_id and one.connection_id == other.connection_id
    )


def uuid_text(value: bytes) -> str:
    """Returns the usual form of a UUID."""
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
