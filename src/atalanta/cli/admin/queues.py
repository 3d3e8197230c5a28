"""What `atalanta queue` and `atalanta address` ask of a broker, by management messages."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import typer

from atalanta.cli.output.escape import messages
from atalanta.cli.output.outcome import NOT_THERE, USAGE, Refused, reported
from atalanta.cli.output.tables import show_table
from atalanta.cli.target import Target
from atalanta.client import Management, ManagementFailed, run
from atalanta.message.encoding.digits import all_digits

Result = TypeVar("Result")
Credentials = tuple[str, str | None, str | None]
BROKER: Final = "broker"
DIGITS_MAX: Final = 19
# Fields that are text even where they look like something else.
TEXTS: Final = frozenset(
    "name address filter user lastValueKey groupFirstKey routingType routingTypes".split()
)
QUEUE_COLUMNS: Final = {
    "name": "queue",
    "address": "address",
    "routingType": "routing",
    "messageCount": "messages",
    "consumerCount": "consumers",
    "deliveringCount": "delivering",
    "scheduledCount": "scheduled",
    "messagesAdded": "added",
    "messagesAcked": "acknowledged",
    "paused": "paused",
}
PEER: Final = ".ActiveMQServerImpl_"  # Artemis' name for such queues, and ours
NUMBERS: Final = ("messages", "consumers", "delivering", "scheduled", "added", "acknowledged")
LEAST: Final = ("paused", "scheduled", "delivering", "acknowledged", "added", "routing")
WITH_ADDRESS: Final = ("address", *LEAST)


def asked(credentials: Credentials, ask: Callable[[Management], Awaitable[Result]]) -> Result:
    """One connection, one management conversation; to be called below `reported`."""
    target = Target(*credentials)

    async def conversation() -> Result:
        async with target.connect() as connection:
            return await ask(connection.management())

    return run(conversation())


def of_the_broker(row: dict[str, object]) -> bool:
    """An internal queue, or the ear of another member for this node's notifications."""
    name = str(row.get("name"))
    return row.get("internalQueue") is True or (name.startswith("notif.") and PEER in name)


def run_stat(
    credentials: Credentials, part: str | None, all_queues: bool, json_output: bool
) -> None:
    """A table of queues, sorted by name; the JSON has every field that the broker gives."""
    with reported():
        rows = asked(credentials, lambda management: queue_rows(management, part))
        rows = [row for row in rows if all_queues or not of_the_broker(row)]
        rows.sort(key=lambda row: str(row.get("name")))
        if json_output:
            typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
            return
        cells = [[cell(row.get(field)) for field in QUEUE_COLUMNS] for row in rows]
        least = (
            LEAST if any(row.get("name") != row.get("address") for row in rows) else WITH_ADDRESS
        )
        show_table(list(QUEUE_COLUMNS.values()), cells, NUMBERS, least)


async def queue_rows(management: Management, part: str | None) -> list[dict[str, object]]:
    """Values with their types, without the queue of this conversation."""
    filtered = ("name", "CONTAINS", part) if part else ()
    rows = await management.rows("listQueues", *filtered)
    own = management.reply_queue
    return [typed_row(row) for row in rows if row.get("name") != own]


def typed_row(row: dict[str, object]) -> dict[str, object]:
    """Brokers give numbers and flags as text (QueueView.toJson, AddressView.toJson)."""
    return {name: typed_value(name, value) for name, value in row.items()}


def typed_value(name: str, value: object) -> object:
    if not isinstance(value, str) or name in TEXTS:
        return value if value != "" else None
    if value in ("true", "false"):
        return value == "true"
    if all_digits(value.removeprefix("-"), DIGITS_MAX):
        return int(value)
    return value or None


def cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)


def run_create(
    credentials: Credentials, definition: dict[str, object], more: list[str], existing: bool
) -> None:
    """createQueue with Artemis' QueueConfiguration as JSON."""
    with reported():
        for one in more:
            name, separator, value = one.partition("=")
            if not name or not separator:
                raise Refused(f"--set {one}: name=value is expected", USAGE)
            definition[name] = value
        text = json.dumps(definition)
        asked(
            credentials, lambda management: management.call(BROKER, "createQueue", text, existing)
        )
        typer.echo(f"created {definition['name']} on address {definition['address']}")


def run_delete(credentials: Credentials, name: str, force: bool, with_address: bool) -> None:
    """destroyQueue. Refused (1) while it has consumers, unless forced."""
    with reported():
        asked(
            credentials,
            lambda management: management.call(BROKER, "destroyQueue", name, force, with_address),
        )
        typer.echo(f"deleted {name}")


def run_operation(
    credentials: Credentials, queue: str, words: str, operation: str, *parameters: object
) -> None:
    """One operation of a queue; `words` with its answer and the queue's name."""
    with reported():
        answer = asked(
            credentials, lambda management: on_queue(management, queue, operation, parameters)
        )
        moved = messages(answer) if isinstance(answer, int) else ""
        typer.echo(words.format(moved, queue))


async def on_queue(
    management: Management, queue: str, operation: str, parameters: tuple[object, ...]
) -> object:
    """Refused (66) for a queue that does not exist, in words that name it."""
    try:
        return await management.call(f"queue.{queue}", operation, *parameters)
    except ManagementFailed as error:
        if "AMQ229067" in error.reason:
            raise Refused(f"queue {queue} does not exist", NOT_THERE) from error
        raise
