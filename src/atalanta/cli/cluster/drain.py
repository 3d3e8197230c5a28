"""The command `atalanta drain`: starts the scale-down of a node, observes it, and reports what is left."""

from __future__ import annotations

import asyncio
import json
from typing import Final

import typer

from atalanta.cli.cluster.drain_artemis import (
    LEAVING,
    connector_places,
    drained_artemis,
    is_real_artemis,
    moved_queues,
    prepare_target,
    real_members,
)
from atalanta.cli.operator_login import operator_login
from atalanta.cli.output.outcome import Refused, reported
from atalanta.cli.output.progress import Bar
from atalanta.cli.output.tables import show_table
from atalanta.client import ConnectionLost, Management, ManagementFailed, run
from atalanta.runtime.process.exit_codes import MESSAGES_LEFT
from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.node.answers import row_of
from atalanta.survey.texts import messages

POLL_INTERVAL_S: Final = 0.2
BROKER: Final = "broker"
ENDED: Final = ("done", "failed")

Progress = dict[str, object]


def run_drain(
    node: str, to: str | None, user: str | None, password: str | None, as_json: bool, quiet: bool
) -> None:
    """Drains the node. Exit status 0 only if the node has no messages left."""
    with reported():
        url = node if "://" in node else f"tcp://{node}"
        target = operator_login(url, user, password)
        node = node.partition("?")[0]  # options may have passwords

        async def conversation() -> Progress:
            async with target.connect() as connection:
                management = connection.management()
                if await is_real_artemis(management):
                    return await drained_artemis(management, node, target, to)
                if to is not None:
                    await prepare_connector(management, node, target, to)
                return await drained(management, node, to, quiet or as_json)

        progress = run(conversation())
        if as_json:
            typer.echo(json.dumps(progress, indent=2, ensure_ascii=False))
        elif not quiet or progress["phase"] not in ("done", LEAVING):
            report(node, progress)
        if progress["phase"] != LEAVING and (progress["phase"] != "done" or progress["left"]):
            raise typer.Exit(MESSAGES_LEFT)


async def drained(management: Management, node: str, to: str | None, quiet: bool) -> Progress:
    """Returns the last progress of the node. Refused if the node cannot scale down."""
    progress = await progress_of(management, node)
    await management.call(BROKER, "scaleDown", to)
    total = counter(progress, "left")
    seen = 0
    waits = False
    with Bar(f"{node} leaves", total, quiet) as bar:
        while progress["phase"] not in ENDED:
            await asyncio.sleep(POLL_INTERVAL_S)
            try:
                progress = await progress_of(management, node)
            except ConnectionLost as error:
                progress = {**progress, "phase": "lost", "why": f"the connection was lost: {error}"}
                break
            if progress["phase"] == "reading" and not waits and not quiet:
                waits = True
                line = "waits for log readers (Spark) to acknowledge the messages delivered to them"
                typer.echo(f"atalanta: {node} {line}", err=True)
            bar.advance(counter(progress, "moved") - seen)
            seen = counter(progress, "moved")
    return progress


async def prepare_connector(management: Management, node: str, leaving: BrokerLogin, to: str) -> None:
    """Makes the queues at the node of a connector, if there is one of that name, before real members look for them."""
    members = await real_members(management, leaving)
    if not members.places:
        return
    place = (await connector_places(management)).get(to)
    if place is not None:
        await prepare_target(management, node, leaving, place, await moved_queues(management), members)


async def progress_of(management: Management, node: str) -> Progress:
    text = await management.call(BROKER, "scaleDownProgress")
    try:
        progress = row_of(text, BROKER, "scaleDownProgress", phase=str)
    except ManagementFailed as error:
        raise Refused(f"{node} does not report its progress: {error}") from error
    progress.setdefault("left", 0)
    return progress


def counter(progress: Progress, name: str) -> int:
    value = progress.get(name)
    return value if isinstance(value, int) else 0


def report(node: str, progress: Progress) -> None:
    """Prints a summary line, and the queues with messages left."""
    if progress["phase"] == LEAVING:
        typer.echo(f"{node} leaves: {messages(counter(progress, 'messages'))} go to {progress['target']}")
        typer.echo("a real Artemis reports no progress: end its JVM when its log says AMQ221002")
        return
    moved, left = counter(progress, "moved"), counter(progress, "left")
    where = f" to {progress['at']} ({progress['target']})" if progress.get("target") else ""
    if progress["phase"] == "done":
        typer.echo(f"{node} has left: {messages(moved)} went{where}")
        return
    typer.echo(f"atalanta: {node}: {messages(moved)} went{where}, {left:,} left", err=True)
    if progress.get("why"):
        typer.echo(f"atalanta: {progress['why']}", err=True)
    queues = progress.get("queues")
    if isinstance(queues, dict) and queues:
        cells = [[str(name), f"{counter(queues, name):,}"] for name in queues]
        show_table(["queue", "messages left"], cells, ("messages left",))
