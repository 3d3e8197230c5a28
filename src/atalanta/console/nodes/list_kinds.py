"""The lists that a node has, with the fields that the console uses of each, and their types.

Brokers answer with text for nearly all values (QueueView, AddressView and so on).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.message.encoding.digits import all_digits

DIGITS_MAX: Final = 20

Value = str | int | bool | list[str] | None
ListRow = dict[str, Value]


@dataclass(frozen=True)
class ListKind:
    """A paged list of the broker. `key` are the fields that name the same thing on each node."""

    operation: str
    key: tuple[str, ...]
    texts: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        return self.texts + self.numbers + self.flags

    def typed(self, row: dict[str, object]) -> ListRow:
        """Returns the fields of a row with their types; None for what the node does not tell, or in another form."""
        found: ListRow = {name: text_of(row.get(name)) for name in self.texts}
        found.update({name: number_of(row.get(name)) for name in self.numbers})
        found.update({name: flag_of(row.get(name)) for name in self.flags})
        return found


def text_of(value: object) -> str | None:
    """Returns a text, None for an empty one."""
    return str(value) if value not in (None, "") else None


def number_of(value: object) -> int | None:
    """Returns a whole number that is a number or a text of digits."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and all_digits(value.removeprefix("-"), DIGITS_MAX):
        return int(value)
    return None


def flag_of(value: object) -> bool | None:
    """Returns a truth value that is one, or its text."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value) if isinstance(value, str) else None


QUEUES: Final = ListKind(
    "listQueues",
    ("address", "name"),
    ("name", "address", "routingType", "filter", "user", "lease"),
    (
        "messageCount", "consumerCount", "deliveringCount", "scheduledCount", "messagesAdded", "messagesAcked",
        "messagesExpired", "messagesKilled", "maxConsumers",
    ),
    ("durable", "paused", "temporary", "internalQueue", "autoCreated", "exclusive", "lastValue", "enabled"),
)  # fmt: skip
ADDRESSES: Final = ListKind(
    "listAddresses",
    ("name",),
    ("name", "routingTypes"),
    (
        "queueCount", "messageCount", "routedMessageCount", "unroutedMessageCount", "addressSize", "numberOfPages",
        "addressLimitPercent",
    ),
    ("paging", "paused", "internal", "temporary", "autoCreated"),
)  # fmt: skip
CONNECTIONS: Final = ListKind(
    "listConnections",
    ("connectionID",),
    ("connectionID", "clientID", "users", "protocol", "remoteAddress", "localAddress", "creationTime",
     "implementation"),
    ("sessionCount",),
)  # fmt: skip
SESSIONS: Final = ListKind(
    "listSessions",
    ("id",),
    ("id", "user", "connectionID", "clientID", "creationTime"),
    ("consumerCount", "producerCount"),
)
CONSUMERS: Final = ListKind(
    "listConsumers",
    ("id", "session"),
    ("id", "session", "queue", "address", "queueType", "filter", "clientID", "user", "protocol", "remoteAddress",
     "creationTime", "status"),
    ("messagesInTransit", "messagesDelivered", "messagesAcknowledged", "lastDeliveredTime", "lastAcknowledgedTime"),
)  # fmt: skip
PRODUCERS: Final = ListKind(
    "listProducers",
    ("id", "session"),
    ("id", "name", "session", "address", "clientID", "user", "protocol", "remoteAddress", "creationTime",
     "lastProducedMessageID"),
    ("msgSent", "msgSizeSent"),
)  # fmt: skip
