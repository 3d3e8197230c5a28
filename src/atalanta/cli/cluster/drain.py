"""What `atalanta drain` does: asks the node to leave, watches it, and says what is left."""

from __future__ import annotations

import asyncio
import json
from typing import Final

import typer

from atalanta.cli.admin.answers import row_of
from atalanta.cli.output.escape import messages
from atalanta.cli.output.outcome import Refused, reported
from atalanta.cli.output.progress import Bar
from atalanta.cli.output.tables import show_table
from atalanta.cli.target import Target
from atalanta.client import ConnectionLost, Management, ManagementFailed, run
from atalanta.runtime.process.exit_codes import MESSAGES_LEFT

LOOK_S: Final = 0.2
BROKER: Final = "broker"
ENDED: Final = ("done", "failed")

Progress = dict[str, object]


def run_drain(
    node: str, to: str | None, user: str | None, password: str | None, as_json: bool, quiet: bool
) -> None:
    """Exit status 0 only if the node has nothing left."""
    with reported():
        url = node if "://" in node else f"tcp://{node}"
        target = Target(url, user, password)

        async def conversation() -> Progress:
            async with target.connect() as connection:
                return await drained(connection.management(), node, to, quiet or as_json)

        told = run(conversation())
        if as_json:
            typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
        elif not quiet or told["phase"] != "done":
            say(node, told)
        if told["phase"] != "done" or told["left"]:
            raise typer.Exit(MESSAGES_LEFT)


async def drained(management: Management, node: str, to: str | None, quiet: bool) -> Progress:
    """The last that the node said of itself. Refused if it cannot leave."""
    told = await progress_of(management, node)
    await management.call(BROKER, "scaleDown", to)
    total = number(told, "left")
    seen = 0
    waits = False
    with Bar(f"{node} leaves", total, quiet) as bar:
        while told["phase"] not in ENDED:
            await asyncio.sleep(LOOK_S)
            try:
                told = await progress_of(management, node)
            except ConnectionLost as error:
                told = {**told, "phase": "lost", "why": f"the connection was lost: {error}"}
                break
            if told["phase"] == "reading" and not waits and not quiet:
                waits = True
                line = "waits for readers of the log (Spark) to acknowledge what they were shown"
                typer.echo(f"atalanta: {node} {line}", err=True)
            bar.advance(number(told, "moved") - seen)
            seen = number(told, "moved")
    return told


async def progress_of(management: Management, node: str) -> Progress:
    try:
        text = await management.call(BROKER, "scaleDownProgress")
    except ManagementFailed as error:
        if "AMQ229069" in error.reason or "no operation" in error.reason.lower():
            line = f"{node} is no Atalanta: stop it with <scale-down> in its broker.xml instead"
            raise Refused(line) from error
        raise
    try:
        told = row_of(text, BROKER, "scaleDownProgress", phase=str)
    except ManagementFailed as error:
        raise Refused(f"{node} does not say how it gets on: {error}") from error
    told.setdefault("left", 0)
    return told


def number(told: Progress, name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) else 0


def say(node: str, told: Progress) -> None:
    """A line, and which queues have something left."""
    moved, left = number(told, "moved"), number(told, "left")
    where = f" to {told['at']} ({told['target']})" if told.get("target") else ""
    if told["phase"] == "done":
        typer.echo(f"{node} has left: {messages(moved)} went{where}")
        return
    typer.echo(f"atalanta: {node}: {messages(moved)} went{where}, {left:,} left", err=True)
    if told.get("why"):
        typer.echo(f"atalanta: {told['why']}", err=True)
    queues = told.get("queues")
    if isinstance(queues, dict) and queues:
        cells = [[str(name), f"{number(queues, name):,}"] for name in queues]
        show_table(["queue", "messages left"], cells, ("messages left",))
