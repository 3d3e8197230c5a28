"""Message ids of OpenWire as text, and ids for messages of other protocols.

CORE's clients see 16 bytes as the id of a message, written as a UUID. Those of an OpenWire message hold its numbers and
a hash of its connection's id. So an answer whose correlation id is such a UUID tells the sender of the request, at any
time and on any node, which of its messages is meant, without a table of messages.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from atalanta.kernel.routing.uuid_namespace import UUID_CHARS, uuid_text
from atalanta.message.user_id import as_uuid, hashed_uuid
from atalanta.wire.openwire.commands.identifiers import MessageId, ProducerId

NUMBER_DIGITS_MAX: Final = 18
PRODUCERS_MAX: Final = 1_000  # that one connection keeps
PREFIX_CHARACTERS_MAX: Final = 256  # of the id of a producer that is kept
# Clients keep the numbers of a producer in an int (ARTEMIS-3776): the upper part is the number of the producer.
LOW_BITS: Final = 31
LOW_MASK: Final = (1 << LOW_BITS) - 1
# The 16 bytes: a hash of the connection's id, then the numbers of session, producer and message. The version of the
# UUID is before their upper part, its variant before the lower one.
CONNECTION_BYTES: Final = 6
CONNECTION_SHIFT: Final = 80
SESSION_BITS: Final = 20
PRODUCER_BITS: Final = 20
SEQUENCE_BITS: Final = 34
UPPER_SHIFT: Final = 64
UPPER_MASK: Final = (1 << 12) - 1
LOWER_BITS: Final = 62
LOWER_MASK: Final = (1 << LOWER_BITS) - 1
UUID_BYTES: Final = 16
ID_PREFIX: Final = "ID:"


class IdTexts:
    """The ids of messages as text. It knows the producer of the last ones, since the next has usually the same."""

    def __init__(self) -> None:
        self._producer: ProducerId | None = None
        self._prefix: str = ""
        self._connection: int = 0  # the hash of the connection's id
        self._producers: dict[str, ProducerId] = {}

    def text(self, message_id: MessageId) -> str:
        """Returns the same as `id_text`."""
        if message_id.text_view or not self._knows(message_id.producer_id):
            return id_text(message_id)
        return f"{self._prefix}{message_id.producer_sequence_id}"

    def uuid(self, message_id: MessageId) -> bytes:
        """Returns 16 bytes for an id, always the same: what CORE clients see as the UUID of the message.

        An id whose numbers do not fit, or that is a text, becomes a hash.
        """
        producer = message_id.producer_id
        if not message_id.text_view and producer is not None and self._knows(producer):
            session, number, sequence = producer.session_id, producer.value, message_id.producer_sequence_id
            fits = 0 <= session < 1 << SESSION_BITS and 0 <= number < 1 << PRODUCER_BITS
            if fits and 0 <= sequence < 1 << SEQUENCE_BITS:
                packed = (session << PRODUCER_BITS | number) << SEQUENCE_BITS | sequence
                upper = packed >> LOWER_BITS
                return as_uuid(self._connection << CONNECTION_SHIFT | upper << UPPER_SHIFT | packed & LOWER_MASK)
        return hashed_uuid(sha256(id_text(message_id).encode("utf-8", "surrogatepass")).digest())

    def _knows(self, producer: ProducerId | None) -> bool:
        """Returns False without a producer."""
        if producer is None:
            return False
        if producer is not self._producer:
            self._producer = producer
            self._prefix = f"{producer.connection_id}:{producer.session_id}:{producer.value}:"
            self._connection = int.from_bytes(_connection_hash(producer.connection_id or ""), "big")
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
        and same_producer(one.producer_id, other.producer_id)
        and (one.text_view or "") == (other.text_view or "")
    )


def uuid_of(message_id: MessageId) -> bytes:
    """Returns 16 bytes for an id, always the same: what CORE clients see as the UUID of the message."""
    return IdTexts().uuid(message_id)


def _connection_hash(connection_id: str) -> bytes:
    return sha256(connection_id.encode("utf-8", "surrogatepass")).digest()[:CONNECTION_BYTES]


def same_producer(one: ProducerId | None, other: ProducerId | None) -> bool:
    """Compares the fields one by one, which needs no tuples: every acknowledgement comes here."""
    if one is None or other is None:
        return one is other
    return (
        one.value == other.value and one.session_id == other.session_id and one.connection_id == other.connection_id
    )


def shown_id(text: str) -> str | None:
    """Returns what CORE's clients see as the JMSMessageID of the OpenWire message with that one; None for no such id.
    """
    found = parsed_id(text, 0)
    return None if found is None else ID_PREFIX + uuid_text(uuid_of(found))


class Correlations:
    """The connections of a node whose messages may be meant by correlation ids, by the hash of their id.

    An answer from another protocol has as its correlation id what `uuid_of` made of the request's id.
    """

    def __init__(self) -> None:
        self._connections: dict[bytes, dict[int, str]] = {}

    def add(self, conn: int, connection_id: str) -> None:
        """Records the id that the client of a connection chose. A client that comes back has it twice for a while."""
        self._connections.setdefault(_connection_hash(connection_id), {})[conn] = connection_id

    def is_first(self, conn: int, connection_id: str) -> bool:
        """Returns True unless another connection that is still there has told that id before."""
        for known, text in self._connections.get(_connection_hash(connection_id), {}).items():
            if text == connection_id:
                return known == conn
        return True

    def remove(self, conn: int, connection_id: str) -> None:
        """Forgets a connection."""
        key = _connection_hash(connection_id)
        known = self._connections.get(key)
        if known is not None:
            known.pop(conn, None)
            if not known:
                del self._connections[key]

    def original(self, text: str) -> str:
        """Returns the id of the OpenWire message that a correlation id means, or the correlation id as it is."""
        if len(text) != len(ID_PREFIX) + UUID_CHARS or not text.startswith(ID_PREFIX):
            return text
        try:
            value = bytes.fromhex(text[len(ID_PREFIX) :].replace("-", ""))
        except ValueError:
            return text
        if len(value) != UUID_BYTES:
            return text
        bits = int.from_bytes(value, "big")
        packed = (bits >> UPPER_SHIFT & UPPER_MASK) << LOWER_BITS | bits & LOWER_MASK
        for connection_id in self._connections.get(value[:CONNECTION_BYTES], {}).values():
            sequence = packed & ((1 << SEQUENCE_BITS) - 1)
            number = packed >> SEQUENCE_BITS & ((1 << PRODUCER_BITS) - 1)
            session = packed >> SEQUENCE_BITS + PRODUCER_BITS
            return f"{connection_id}:{session}:{number}:{sequence}"
        return text
