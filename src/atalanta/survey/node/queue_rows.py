"""Rows of management's listings with typed values, and the rows of a node's queues."""

from __future__ import annotations

from typing import Final

from atalanta.client import Management
from atalanta.message.encoding.digits import all_digits
from atalanta.survey.node.answers import parsed

BROKER: Final = "broker"
DIGITS_MAX: Final = 19
# Fields that are always text, even if the value looks like a number.
TEXTS: Final = frozenset(
    "name address filter user lastValueKey groupFirstKey routingType routingTypes".split()
)
PEER: Final = ".ActiveMQServerImpl_"  # Artemis' name for such queues, and Atalanta's


def is_internal(row: dict[str, object]) -> bool:
    """Returns whether the queue is internal, or the notification queue of another member."""
    name = str(row.get("name"))
    return row.get("internalQueue") is True or (name.startswith("notif.") and PEER in name)


async def queue_rows(management: Management, part: str | None) -> list[dict[str, object]]:
    """Returns the queues with typed values, without the queue of this conversation."""
    filtered = ("name", "CONTAINS", part) if part else ()
    rows = await management.rows("listQueues", *filtered)
    own = management.reply_queue
    return [typed_row(row) for row in rows if row.get("name") != own]


def typed_row(row: dict[str, object]) -> dict[str, object]:
    """Converts the values of a row: brokers send numbers and flags as text (QueueView.toJson, AddressView.toJson)."""
    typed = {name: typed_value(name, value) for name, value in row.items()}
    if typed.get("lease"):
        typed["lease"] = parsed(typed["lease"], BROKER, "listQueues")
    return typed


def typed_value(name: str, value: object) -> object:
    if not isinstance(value, str) or name in TEXTS:
        return value if value != "" else None
    if value in ("true", "false"):
        return value == "true"
    if all_digits(value.removeprefix("-"), DIGITS_MAX):
        return int(value)
    return value or None
