"""The producers of a session, which management lists with the messages that they have sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from atalanta.kernel.security.resource_limits import NAME_CHARS_MAX

if TYPE_CHECKING:
    from atalanta.kernel.sessions.clients import Clients
    from atalanta.message.message import Message

PRODUCERS_MAX: Final = 10_000
UNNAMED_MAX: Final = 100


class SessionProducer:
    """A producer. `id` is the broker's number for it, `number` the client's; `created_at` is in ns.

    `sent_bytes` is the size of the encoded messages, or of the bodies of large ones. `last_user_id` is the UUID of the
    last message, if the client gave it one.
    """

    def __init__(self, producer_id: int, number: i64, address: str | None, created_at: int) -> None:
        self.sent: int = 0
        self.sent_bytes: int = 0
        self.last_user_id: bytes | None = None
        self.number: i64 = number
        self.address = address
        self.id = producer_id
        self.created_at = created_at

    def count(self, message: Message) -> None:
        """Counts a message that the producer has sent."""
        large = message.large
        self.sent += 1
        self.sent_bytes += message.encoded_size if large is None else large.size
        self.last_user_id = message.user_id


class SessionProducers:
    """The producers by the client's numbers, up to PRODUCERS_MAX.

    Clients before protocol version 134 do not name their producers: they have one for each address that they send to,
    up to UNNAMED_MAX, as in Artemis (ServerLegacyProducersImpl).
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._named: dict[int, SessionProducer] = {}
        self._unnamed: dict[str, SessionProducer] = {}
        self._last: SessionProducer | None = None  # usually the next message is of the same producer

    def __len__(self) -> int:
        return len(self._named) + len(self._unnamed)

    def values(self) -> list[SessionProducer]:
        return [*self._named.values(), *self._unnamed.values()]

    def add(self, now: int, number: int, address: str | None) -> None:
        """Adds a producer; the client keeps one that it has created before with this number."""
        if len(self._named) < PRODUCERS_MAX and number not in self._named:
            self._named[number] = self._producer(now, number, address)

    def _producer(self, now: int, number: int, address: str | None) -> SessionProducer:
        listed = None if address is None else address[:NAME_CHARS_MAX]
        return SessionProducer(self._clients.take_number(), number, listed, now)

    def remove(self, number: int) -> None:
        self._named.pop(number, None)
        self._last = None

    def count(self, number: i64, message: Message) -> None:
        """Counts a message of the producer; one that is not known is not counted."""
        producer = self._last
        if producer is None or producer.number != number:
            producer = self._named.get(int(number))
            if producer is None:
                return
            self._last = producer
        producer.count(message)

    def count_unnamed(self, now: int, message: Message) -> None:
        """Counts a message of a client that does not name its producers."""
        producer = self._last
        if producer is None or producer.address != message.address:
            address = message.address
            producer = self._unnamed.get(address)
            if producer is None:
                if len(self._unnamed) >= UNNAMED_MAX:
                    return
                producer = self._producer(now, -1, address)
                self._unnamed[address] = producer
            self._last = producer
        producer.count(message)
