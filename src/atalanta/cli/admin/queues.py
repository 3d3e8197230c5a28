"""The management requests of `atalanta queue` and `atalanta address`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import typer

from atalanta.cli.operator_login import operator_login
from atalanta.cli.output.escape import plain
from atalanta.cli.output.outcome import NOT_THERE, USAGE, Refused, confirm, reported
from atalanta.cli.output.tables import show_table
from atalanta.client import Management, ManagementFailed, run
from atalanta.survey.model.cluster import LiveCluster
from atalanta.survey.model.lease import lease_of
from atalanta.survey.model.queues import ClusterQueue
from atalanta.survey.node.queue_rows import BROKER, is_internal, queue_rows
from atalanta.survey.survey import Survey
from atalanta.survey.texts import messages

Result = TypeVar("Result")
Credentials = tuple[str, str | None, str | None]
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
NUMBERS: Final = ("messages", "consumers", "delivering", "scheduled", "added", "acknowledged")
LEAST: Final = ("paused", "scheduled", "delivering", "acknowledged", "added", "routing")
WITH_ADDRESS: Final = ("address", *LEAST)


def asked(credentials: Credentials, ask: Callable[[Management], Awaitable[Result]]) -> Result:
    """Runs `ask` with one management conversation on a new connection. Call it within `reported`."""
    target = operator_login(*credentials)

    async def conversation() -> Result:
        async with target.connect() as connection:
            return await ask(connection.management())

    return run(conversation())


def run_stat(
    credentials: Credentials, part: str | None, all_queues: bool, json_output: bool
) -> None:
    """Prints a table of queues, sorted by name, and who has leased them; the JSON has every field of the answer."""
    with reported():
        rows = asked(credentials, lambda management: queue_rows(management, part))
        rows = [row for row in rows if all_queues or not is_internal(row)]
        rows.sort(key=lambda row: str(row.get("name")))
        if json_output:
            typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
            return
        cells = [[cell(row.get(field)) for field in QUEUE_COLUMNS] for row in rows]
        least = (
            LEAST if any(row.get("name") != row.get("address") for row in rows) else WITH_ADDRESS
        )
        show_table(list(QUEUE_COLUMNS.values()), cells, NUMBERS, least)
        for row in rows:
            lease = lease_of(row)
            if lease is not None:
                typer.echo(plain(f"{row['name']} is leased to {lease.text()}"))


def cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)


def run_create(
    credentials: Credentials, definition: dict[str, object], more: list[str], existing: bool
) -> None:
    """Calls createQueue with Artemis' QueueConfiguration as JSON."""
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


def run_delete(
    credentials: Credentials, name: str, force: bool, with_address: bool, yes: bool
) -> None:
    """Calls destroyQueue. Refused (1) while the queue has consumers, unless forced."""
    with reported():
        confirm(f"Delete queue {name} with its messages", yes)
        asked(
            credentials,
            lambda management: management.call(BROKER, "destroyQueue", name, force, with_address),
        )
        typer.echo(f"deleted {name}")


def run_operation(
    credentials: Credentials, queue: str, words: str, operation: str, *parameters: object
) -> None:
    """Calls one operation of a queue and prints `words` with its answer and the queue's name."""
    with reported():
        answer = asked(
            credentials, lambda management: on_queue(management, queue, operation, parameters)
        )
        moved = messages(answer) if isinstance(answer, int) else ""
        typer.echo(words.format(moved, queue))


def run_cluster_stat(credentials: Credentials, part: str | None, json_output: bool) -> None:
    """Prints a table of the queues over all nodes of the cluster: their sums, and the messages at each node."""
    url, user, password = credentials
    with reported():
        survey = Survey(operator_login(url, user, password), 0, details=False, queues=True)
        cluster = run(survey.run([url]))
        queues = [each for each in cluster.queues() if part is None or part in each.name]
        if json_output:
            typer.echo(json.dumps([described(cluster, each) for each in queues], indent=2, ensure_ascii=False))
            return
        rows = []
        for queue in queues:
            counts = [f"{queue.total(name):,}" for name in NUMBERS]
            paused = "yes" if any(each.paused for each in queue.by_node.values()) else ""
            nodes = {cluster.label(node_id): each.messages for node_id, each in queue.by_node.items()}
            shown = ", ".join(f"{name} {count:,}" for name, count in sorted(nodes.items()))
            rows.append([queue.name, queue.address, queue.routing_type, *counts, paused, shown])
        heads = ["queue", "address", "routing", *NUMBERS, "paused", "messages at each node"]
        show_table(heads, rows, NUMBERS, LEAST)
        for failed in cluster.unreachable:
            typer.echo(plain(f"not asked: {failed.at}: {failed.why}"), err=True)


def described(cluster: LiveCluster, queue: ClusterQueue) -> dict[str, object]:
    """Returns a queue over all nodes for programs."""
    return {
        "name": queue.name,
        "address": queue.address,
        "routingType": queue.routing_type,
        **{name: queue.total(name) for name in NUMBERS},
        "nodes": {
            cluster.label(node_id): {name: getattr(each, name) for name in NUMBERS}
            for node_id, each in queue.by_node.items()
        },
    }


async def on_queue(
    management: Management, queue: str, operation: str, parameters: tuple[object, ...]
) -> object:
    """Calls an operation of a queue. Refused (66), with its name, for a queue that does not exist."""
    try:
        return await management.call(f"queue.{queue}", operation, *parameters)
    except ManagementFailed as error:
        if "AMQ229067" in error.reason:
            raise Refused(f"queue {queue} does not exist", NOT_THERE) from error
        raise
