"""The management requests of `atalanta address`."""

from __future__ import annotations

import json
from typing import Final

import typer

from atalanta.cli.admin.queues import Credentials, asked, cell
from atalanta.cli.output.outcome import confirm, reported
from atalanta.cli.output.tables import show_table
from atalanta.client import Management
from atalanta.survey.node.queue_rows import BROKER, typed_row

COLUMNS: Final = ("address", "routing", "queues", "messages", "bytes", "paused")
NUMBERS: Final = ("queues", "messages", "bytes")


def run_show(credentials: Credentials, part: str | None, json_output: bool) -> None:
    """Prints the addresses as a table, or the broker's rows as JSON."""
    with reported():
        rows = asked(credentials, lambda management: address_rows(management, part))
        if json_output:
            typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
            return
        fields = ("name", "routingTypes", "queueCount", "messageCount", "addressSize", "paused")
        show_table(COLUMNS, [[cell(row.get(field)) for field in fields] for row in rows], NUMBERS)


async def address_rows(management: Management, part: str | None) -> list[dict[str, object]]:
    """Returns the addresses sorted by name, without internal ones; values are typed."""
    filtered = ("name", "CONTAINS", part) if part else ()
    rows = [shown_row(row) for row in await management.rows("listAddresses", *filtered)]
    rows = [
        row for row in rows if row.get("internal") is not True and row.get("temporary") is not True
    ]
    return sorted(rows, key=lambda row: str(row.get("name")))


def shown_row(row: dict[str, object]) -> dict[str, object]:
    """Decodes the routing types, which arrive as JSON text."""
    found = typed_row(row)
    types = str(found.get("routingTypes") or "").strip("[]").replace('"', "")
    found["routingTypes"] = ", ".join(sorted(types.split(",")))
    return found


def run_create(credentials: Credentials, name: str, types: list[str]) -> None:
    """Calls createAddress."""
    with reported():
        wanted = ",".join(types)
        asked(
            credentials, lambda management: management.call(BROKER, "createAddress", name, wanted)
        )
        typer.echo(f"created address {name} ({wanted.lower()})")


def run_delete(credentials: Credentials, name: str, force: bool, yes: bool) -> None:
    """Calls deleteAddress."""
    with reported():
        if force:
            confirm(f"Delete address {name} with its queues and their messages", yes)
        asked(credentials, lambda management: management.call(BROKER, "deleteAddress", name, force))
        typer.echo(f"deleted address {name}")
