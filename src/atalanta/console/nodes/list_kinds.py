"""The lists that a node has, with the fields that the console uses of each, and their types.

Brokers answer with text for nearly all values (QueueView, AddressView and so on).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from atalanta.message.encoding.digits import all_digits

DIGITS_MAX: Final = 20
JAVA_DATE: Final = "%a %b %d %H:%M:%S UTC %Y"

Value = str | int | bool | list[str] | None
ListRow = dict[str, Value]


@dataclass(frozen=True)
class ListKind:
    """A paged list of the broker. `key` are the fields that name the same thing on each node.

    `dates` are ms since 1970, or the node's text where it is in no form that is known.
    """

    operation: str
    key: tuple[str, ...]
    texts: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        return self.texts + self.numbers + self.flags + self.dates

    def typed(self, row: dict[str, object]) -> ListRow:
        """Returns the fields of a row with their types; None for what the node does not tell, or in another form."""
        found: ListRow = {name: text_of(row.get(name)) for name in self.texts}
        found.update({name: number_of(row.get(name)) for name in self.numbers})
        found.update({name: flag_of(row.get(name)) for name in self.flags})
        found.update({name: date_of(row.get(name)) for name in self.dates})
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


def date_of(value: object) -> int | str | None:
    """Returns a time in ms of a number, or of Java's text "Sat Nov 21 15:35:36 UTC 2026"; other text as it is."""
    number = number_of(value)
    if number is not None:
        return number if number > 0 else None
    text = text_of(value)
    if text is None:
        return None
    try:
        at = datetime.strptime(text, JAVA_DATE).replace(tzinfo=UTC)
    except ValueError:
        return text
    return int(at.timestamp() * 1_000)


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
    ("connectionID", "clientID", "users", "protocol", "remoteAddress", "localAddress", "implementation"),
    ("sessionCount",),
    dates=("creationTime",),
)  # fmt: skip
SESSIONS: Final = ListKind(
    "listSessions",
    ("id",),
    ("id", "user", "connectionID", "clientID"),
    ("consumerCount", "producerCount"),
    dates=("creationTime",),
)
CONSUMERS: Final = ListKind(
    "listConsumers",
    ("id", "session"),
    ("id", "session", "queue", "address", "queueType", "filter", "clientID", "user", "protocol", "remoteAddress",
     "status"),
    ("messagesInTransit", "messagesDelivered", "messagesAcknowledged"),
    dates=("creationTime", "lastDeliveredTime", "lastAcknowledgedTime"),
)  # fmt: skip
PRODUCERS: Final = ListKind(
    "listProducers",
    ("id", "session"),
    ("id", "name", "session", "address", "clientID", "user", "protocol", "remoteAddress", "lastProducedMessageID"),
    ("msgSent", "msgSizeSent"),
    dates=("creationTime",),
)  # fmt: skip
CHANGES: Final = ListKind(
    "listChangingCalls",
    ("number",),
    ("user", "operatorAddress", "remoteAddress", "operation", "resource", "name", "refusal"),
    ("number", "count"),
    dates=("time", "lastTime"),
)
