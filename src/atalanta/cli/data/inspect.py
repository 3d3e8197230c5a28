"""The commands of `atalanta data`."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Final

import typer

from atalanta.cli.data.folder import FolderContents
from atalanta.cli.data.node_export import definition_lines
from atalanta.cli.messages.browse import COLUMNS, LEAST, NUMBERS, row_of
from atalanta.cli.messages.json_lines import line_of_message
from atalanta.cli.output.outcome import FAILED, Refused, reported
from atalanta.cli.output.progress import Bar
from atalanta.cli.output.tables import show_table
from atalanta.client import ClientError
from atalanta.kernel.journal import records
from atalanta.kernel.ports import PageError
from atalanta.kernel.queue.queue import Queue
from atalanta.message.selector.lexer import FilterError
from atalanta.message.selector.selector import parse
from atalanta.runtime.ha.group.member_folder import read_member
from atalanta.runtime.ha.group.member_status import read_status
from atalanta.runtime.process.exit_codes import BAD_DATA
from atalanta.store.tail_cut import CUT_PREFIX, DAMAGED_PREFIX
from atalanta.survey.texts import counted, messages

KINDS: Final = {
    records.COUNTERS: "counters",
    records.ADDRESS: "address",
    records.ADDRESS_DELETED: "address deleted",
    records.QUEUE: "queue",
    records.QUEUE_DELETED: "queue deleted",
    records.MESSAGE: "message",
    records.ACKS: "acknowledgements",
    records.ACK_THROUGH: "acknowledged through",
    records.DELIVERY: "delivery",
    records.DUPLICATES: "duplicate ids",
    records.BATCH: "transaction",
    records.LEASE: "lease",
    records.LOST: "lost range",
    records.VALUE: "value",
    records.XA_PREPARED: "XA prepared",
    records.XA_ENDED: "XA ended",
    records.PLACED: "scheduled, now due",
    records.PAGE: "page",
    records.PAGE_DONE: "page done",
    records.PLAIN_MESSAGE: "message of one queue",
    records.DUPLICATES_DROPPED: "duplicate ids dropped",
    records.FIRST_SEGMENT: "first segment",
}
ROUTING: Final = ("MULTICAST", "ANYCAST")
QUEUE_COLUMNS: Final = ("queue", "address", "routing", "messages", "bytes", "scheduled", "in pages")


def opened(folder: Path, while_running: bool) -> FolderContents:
    """Opens the folder; prints a warning for a folder that a node is writing to."""
    found = FolderContents(folder, while_running)
    if found.running:
        typer.echo(f"atalanta: {found.folder}: a node writes here; what follows may lag", err=True)
    for line in found.damaged:
        typer.echo(f"atalanta: {line}", err=True)
    return found


def summary(data: FolderContents) -> dict[str, object]:
    """Returns the journal's counts, for JSON."""
    report = data.report
    return {
        "folder": str(data.folder),
        "node_id": str(data.node_id),
        "segments": report.segments,
        "bytes": report.bytes,
        "blocks": report.blocks,
        "records": report.records,
        "first_record": report.first,
        "last_record": report.last,
        "torn_bytes": report.torn_bytes,
        "torn_at": report.torn_at,
        "pages": len(data.pages()),
        "prepared_transactions": data.broker.branches.prepared,
        **member_summary(data),
        "kinds": {
            KINDS.get(kind, f"kind {kind}"): {"records": count, "bytes": size}
            for kind, (count, size) in sorted(data.kinds.items())
        },
    }


def member_summary(data: FolderContents) -> dict[str, object]:
    """Returns what a folder knows of itself as a member of a replicated group; {} if it is none."""
    member = read_member(data.folder)
    if not member:
        return {}
    status = read_status(data.folder)
    found: dict[str, object] = {
        "member": member,
        "epochs": ", ".join(f"{epoch} from record {first}" for epoch, first in data.report.epochs),
        "kept_files": " ".join(name for name in data.disk.names() if name.startswith((CUT_PREFIX, DAMAGED_PREFIX))),
    }
    if status is not None:  # the process was killed, or runs
        behind = f", {counted(status.behind, 'record')} behind" if status.behind else ""
        found["last_state"] = f"{status.state} in epoch {status.epoch}{behind}"
        found["last_active"] = status.active
    return found


def queue_row(queue: Queue) -> dict[str, object]:
    paged = queue.paged
    return {
        "name": queue.name,
        "address": queue.spec.address,
        "routing_type": ROUTING[queue.spec.routing_type],
        "durable": queue.durable,
        "filter": queue.spec.filter_text,
        "messages": queue.message_count,
        "bytes": queue.bytes,
        "scheduled": queue.scheduled_count,
        "in_pages": 0 if paged is None else paged.count,
    }


def run_show(folder: Path, while_running: bool, json_output: bool) -> None:
    """Prints two tables, or one JSON object."""
    with reported():
        data = opened(folder, while_running)
        found = summary(data)
        queues = [queue_row(queue) for queue in data.queues()]
        if json_output:
            typer.echo(json.dumps({**found, "queues": queues}, indent=2, ensure_ascii=False))
            return
        rows = [
            [name.replace("_", " "), shown(value)]
            for name, value in found.items()
            if name != "kinds"
        ]
        for kind, (count, size) in sorted(data.kinds.items()):
            name = KINDS.get(kind, f"kind {kind}")
            rows.append([f"  {name}", f"{counted(count, 'record')}, {counted(size, 'byte')}"])
        show_table(("journal", ""), rows)
        fields = ("name", "address", "routing_type", "messages", "bytes", "scheduled", "in_pages")
        cells = [[shown(queue[field]) for field in fields] for queue in queues]
        show_table(QUEUE_COLUMNS, cells, QUEUE_COLUMNS[3:], ("in pages", "scheduled", "routing"))


def shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def run_messages(
    folder: Path,
    name: str,
    count: int,
    selector: str | None,
    while_running: bool,
    json_output: bool,
) -> None:
    """Prints messages like `atalanta browse`."""
    with reported():
        try:
            wanted = None if selector is None else parse(selector)
        except FilterError as error:
            raise Refused(f"selector {selector!r}: {error}", 2) from None
        data = opened(folder, while_running)
        queue = data.queue(name)
        chosen = (
            data.received(reference)
            for reference in data.references(queue)
            if wanted is None or wanted.matches(reference.message)
        )
        if json_output:
            for message in islice(chosen, count):
                sys.stdout.write(line_of_message(message) + "\n")
            return
        show_table(COLUMNS, [row_of(message) for message in islice(chosen, count)], NUMBERS, LEAST)
        if next(chosen, None) is not None:
            typer.echo(f"the first {count}; there are more: --count", err=True)


def run_export(folder: Path, names: list[str], output: Path | None, while_running: bool) -> None:
    """Exports all queues except internal ones, or the named queues. An existing file is not overwritten.

    What is too large for a line is named and left out; the exit status is 1 then.
    """
    left_out: list[str] = []
    with reported():
        data = opened(folder, while_running)
        queues = [data.queue(name) for name in names]
        if not names:
            queues = [queue for queue in data.queues() if not queue.internal]
        count = 0
        opening = nullcontext(sys.stdout) if output is None else output.open("x", encoding="utf-8")
        total = sum(queue.message_count for queue in queues)
        with opening as out, Bar("exported", total, output is None) as bar:
            if not names:
                for line in definition_lines(data, queues):
                    out.write(line + "\n")
            for queue in queues:
                for message in data.messages(queue):
                    bar.advance(1)
                    try:
                        line = line_of_message(message)
                    except ClientError as error:
                        left_out.append(f"message {message.message_id} of {queue.name} not exported: {error.text}")
                        continue
                    out.write(line + "\n")
                    count += 1
        typer.echo(f"exported {messages(count)} of {counted(len(queues), 'queue')}", err=True)
        if not names:
            tell_left_out(data)
        for why in left_out:
            typer.echo(f"atalanta: {why}", err=True)
    if left_out:
        raise typer.Exit(FAILED)


def tell_left_out(data: FolderContents) -> None:
    """Names what an export of all queues does not hold."""
    for queue in data.queues():
        if queue.internal and queue.message_count:
            why = "they are for another node, which gets them when this one runs"
            typer.echo(f"atalanta: {messages(queue.message_count)} of {queue.name} not exported: {why}", err=True)
    if data.broker.branches.prepared:
        prepared = counted(data.broker.branches.prepared, "prepared transaction")
        typer.echo(f"atalanta: {prepared} not exported: end them in the running node first", err=True)


def run_verify(folder: Path, while_running: bool, json_output: bool) -> None:
    """Reads all pages. Damage in the journal was found by opening the folder (exit status in
    cli/output/outcome.py)."""
    with reported():
        data = opened(folder, while_running)
        blocks = 0
        damaged = data.damaged
        told = len(damaged)
        for page in data.pages():
            for block in range(len(page.starts)):
                if page.block_is_finished(block):
                    continue
                try:
                    data.files.read(page.number, block)
                    blocks += 1
                except PageError as error:
                    damaged.append(str(error))
        found = {**summary(data), "page_blocks": blocks, "damaged": damaged}
        if json_output:
            typer.echo(json.dumps(found, indent=2))
        else:
            typer.echo(
                f"{data.folder}: {counted(data.report.segments, 'segment')}, {counted(data.report.blocks, 'block')}, "
                f"{counted(data.report.records, 'record')}, "
                f"{counted(len(data.pages()), 'page file')} with {counted(blocks, 'block')}"
            )
            if found["torn_bytes"]:
                typer.echo(
                    f"the last {found['torn_bytes']:,} bytes, from {found['torn_at']}, are of a write that a crash "
                    "cut off: never confirmed, and cut at the next start"
                )
            if data.report.expected:
                typer.echo(f"{data.report.expected} is missing, or a crash came before it was created")
            for line in damaged[told:]:
                typer.echo(line, err=True)
            if not damaged:
                typer.echo("every checksum is correct")
    if damaged:
        raise typer.Exit(BAD_DATA)
