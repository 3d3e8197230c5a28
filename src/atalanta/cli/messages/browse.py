"""The command `atalanta browse`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Final

import typer

from atalanta.cli.messages.consume import pairs, readable
from atalanta.cli.messages.destination import parse_destination
from atalanta.cli.messages.json_lines import line_of_message, type_name
from atalanta.cli.messages.unknown_queue import unknown_queue
from atalanta.cli.output.outcome import USAGE, Refused, reported
from atalanta.cli.output.tables import show_table
from atalanta.client import QueueDoesNotExist, ReceivedMessage, run
from atalanta.survey.broker_login import BrokerLogin

TEXT_MAX: Final = 60
COLUMNS: Final = ("id", "time", "type", "priority", "durable", "bytes", "properties", "body")
NUMBERS: Final = ("id", "priority", "bytes")
LEAST: Final = ("durable", "priority", "properties", "type", "time")


def run_browse(
    target: BrokerLogin, destination: str, count: int, selector: str | None, json_output: bool
) -> None:
    """Prints a table of at most `count` messages, or a JSON line for each."""
    with reported():
        found = parse_destination(destination)
        if found.is_topic:
            raise Refused(
                "a topic has no messages to browse, its queues have: address::queue", USAGE
            )
        rows: list[list[str]] = []
        more = run(
            browse_messages(target, found.name, count, selector, None if json_output else rows)
        )
        if not json_output:
            show_table(COLUMNS, rows, NUMBERS, LEAST)
            if more:
                typer.echo(f"the first {count}; there are more: --count", err=True)


async def browse_messages(
    target: BrokerLogin, queue: str, count: int, selector: str | None, rows: list[list[str]] | None
) -> bool:
    """Reads messages into `rows`, or without `rows` writes them as JSON lines. Returns whether there are more than
    `count`."""
    shown = 0
    async with target.connect(large_files=True) as connection:
        try:
            opened = await connection.consumer(queue, selector, browse=True)
        except QueueDoesNotExist:
            raise await unknown_queue(connection, queue) from None
        async with opened as browser:
            async for message in browser:
                if shown == count:
                    return True
                shown += 1
                if rows is None:
                    sys.stdout.write(line_of_message(message, oversized=True) + "\n")
                else:
                    rows.append(row_of(message))
    return False


def row_of(message: ReceivedMessage) -> list[str]:
    return [
        str(message.message_id),
        time_text(message.timestamp_ms),
        type_name(message.type),
        str(message.priority),
        "yes" if message.durable else "no",
        str(message.body_bytes),
        shortened(pairs(message.properties)),
        shortened(readable(message)),
    ]


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"


def time_text(at_ms: int) -> str:
    """Formats UTC; empty for a message without a time."""
    if not 0 < at_ms < 1 << 47:
        return ""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
