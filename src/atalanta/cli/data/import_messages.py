"""`atalanta data import`: sends the messages of an export to the queues that they were in.

A message goes to its address, as clients see it, and names its queue by `_AMQ_ROUTE_TO`, as XmlDataImporter does. So
the other subscriptions of the address do not get it. The id by which the node finds a repeat is that of a bridge
(`_AMQ_BRIDGE_DUP`): the application's own duplicate id stays.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Final

import typer

from atalanta.cli.data.artemis_export import ArtemisExport
from atalanta.cli.data.export import Binding, Export, ExportedMessage, ExportSurvey
from atalanta.cli.data.node_export import NodeExport
from atalanta.cli.messages.produce import report_blocked
from atalanta.cli.output.escape import plain
from atalanta.cli.output.outcome import NOT_ALLOWED, NOT_THERE, Refused, reported
from atalanta.cli.output.progress import Bar
from atalanta.cli.output.tables import show_table
from atalanta.client import (
    AddressExists,
    Connection,
    ManagementFailed,
    NotAuthorized,
    Producer,
    run,
)
from atalanta.client.management import BROKER, Management
from atalanta.client.message import ROUTING_NAMES
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.registry.duplicate_spaces import IMPORT
from atalanta.message.message import ROUTE_TO
from atalanta.runtime.process.exit_codes import BAD_DATA
from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.texts import counted, messages

INTERNAL_PREFIX: Final = "$"  # of queues for other nodes: $.artemis.internal.sf.…
CREATED: Final = "is created"
COLUMNS: Final = ("queue", "address", "routing", "messages", "there now")


class Import:
    """One import. Counts are of copies: a message that was in two queues is sent to each of them."""

    def __init__(self, survey: ExportSurvey, connection: Connection) -> None:
        self.sent = 0
        self.repeated = 0  # those that the node had already
        self.left = {name: count for name, count in survey.messages.items() if name.startswith(INTERNAL_PREFIX)}
        self.there: dict[str, int] = {}  # messages in queues that exist
        self.new_addresses: list[str] = []
        self.new_queues: list[str] = []
        self.notes: list[str] = []
        self._survey = survey
        self._connection = connection
        self._management = Management(connection)
        self._producers: dict[tuple[str, str | None], Producer] = {}
        self._ids: dict[str, bytes] = {}  # of queues, 8 bytes each
        self._watching: list[asyncio.Task[None]] = []

    @property
    def total(self) -> int:
        return self._survey.total - sum(self.left.values())

    def bindings(self) -> list[Binding]:
        """Returns the queues to import, by name."""
        survey = self._survey
        names = sorted({*survey.export.bindings, *survey.messages})
        return [survey.binding(name) for name in names if not name.startswith(INTERNAL_PREFIX)]

    async def compare(self) -> None:
        """Compares the export with what the node has. Refused if a queue exists at another address."""
        for binding in self.bindings():
            found = await self._connection.query_queue(binding.name)
            if not found.exists:
                self.new_queues.append(binding.name)
                continue
            if found.address != binding.address:
                raise Refused(
                    f"queue {binding.name} exists at address {found.address}, in the export it is one of "
                    f"{binding.address}: delete or rename it first; nothing was sent"
                )
            self.there[binding.name] = found.message_count
            for what, here, wanted in (
                ("filter", found.filter or None, binding.filter),
                ("routing type", ROUTING_NAMES[found.routing_type], binding.routing),
            ):
                if here != wanted and binding.name in self._survey.export.bindings:
                    was = "in the export there is none" if wanted is None else f"in the export it is {wanted}"
                    self.notes.append(f"queue {binding.name} stays as it is: its {what} is {here or 'none'}, {was}")
        addresses = {*self._survey.export.addresses, *(binding.address for binding in self.bindings())}
        for name in sorted(addresses):
            if not name.startswith(INTERNAL_PREFIX) and not (await self._connection.query_address(name)).exists:
                self.new_addresses.append(name)
        await self._compare_limit()

    def created(self) -> dict[str, list[str]]:
        """Returns the names of what the node did not have."""
        return {"addresses": self.new_addresses, "queues": self.new_queues}

    async def _compare_limit(self) -> None:
        """Notes addresses of which the node cannot remember all messages."""
        try:
            limit = await self._management.get(BROKER, "IDCacheSize")
        except NotAuthorized as error:
            raise Refused(
                f"{error.text}: an import needs the permission manage, to name the queues; nothing was sent",
                NOT_ALLOWED,
            ) from error
        except ManagementFailed:
            return  # a broker that does not say
        for address, count in self._survey.by_address.items():
            if isinstance(limit, int) and count > limit and not address.startswith(INTERNAL_PREFIX):
                self.notes.append(
                    f"address {address} gets {messages(count)}, and the node remembers {limit:,} (id-cache-size): a "
                    "second import would send the others again; a larger id-cache-size in broker.xml prevents that"
                )

    async def send_all(self, bar: Bar) -> None:
        """Sends everything; returns when the broker has stored it."""
        try:
            await self._send_all(bar)
        finally:
            for each in self._watching:
                each.cancel()

    async def _send_all(self, bar: Bar) -> None:
        for exported in self._survey.export.messages():
            with nullcontext() if exported.body is None else closing(exported.body):
                for queue in exported.queues:
                    if queue not in self.left:
                        await self._send(exported, queue)
            bar.advance(1)
        for address in list(self._survey.export.addresses):
            await self._create_address(address)
        for binding in self.bindings():
            await self._queue_id(binding)  # empty queues, subscriptions above all, are created too
        for producer in self._producers.values():
            await producer.drain()
            self.repeated += producer.repeats
        self.sent -= self.repeated
        await self._management.close()

    async def _send(self, exported: ExportedMessage, queue: str) -> None:
        binding = self._survey.binding(queue)
        queue_id = await self._queue_id(binding)
        producer = await self._producer(exported.address or binding.address, exported.routing)
        message = exported.message()
        message.properties = {
            **(message.properties or {}),
            ROUTE_TO: queue_id,
            BRIDGE_DUPLICATE: IMPORT + exported.identity(queue),
        }
        if message.stream is None:
            await producer.send_soon(message)
        else:
            await producer.send(message)
        self.sent += 1

    async def _queue_id(self, binding: Binding) -> bytes:
        """Returns the id of a queue, which is created if it is missing."""
        found = self._ids.get(binding.name)
        if found is None:
            await self._create_address(binding.address)
            if binding.name not in self.there:
                await self._connection.create_queue(
                    binding.name,
                    binding.address,
                    binding.routing,
                    filter=binding.filter,
                    max_consumers=binding.max_consumers,
                    purge_on_no_consumers=binding.purge_on_no_consumers,
                    auto_created=binding.auto_created,
                    ignore_existing=True,
                    kind=binding.kind,
                )
            number = await self._management.get(f"queue.{binding.name}", "ID")
            if not isinstance(number, int):
                raise Refused(f"queue {binding.name} has no id at the broker, but {number}", NOT_THERE)
            found = self._ids[binding.name] = number.to_bytes(8, "big", signed=True)
        return found

    async def _producer(self, address: str, routing: str | None) -> Producer:
        found = self._producers.get((address, routing))
        if found is None:
            found = self._producers[address, routing] = await self._connection.producer(address, routing)
            self._watching.append(asyncio.create_task(report_blocked(found, False)))
        return found

    async def _create_address(self, name: str) -> None:
        """Creates an address with its routing types, once; an existing one stays as it is."""
        definition = self._survey.export.addresses.pop(name, None)
        if definition is not None and definition.routing_types and not name.startswith(INTERNAL_PREFIX):
            try:
                await self._connection.create_address(
                    name, *definition.routing_types, auto_created=definition.auto_created
                )
            except AddressExists:
                pass


def export_of(file: Path) -> Export:
    """Returns the reader for a file: XML of `artemis data exp`, or JSON lines of `data export`. Refused (65)."""
    with file.open("rb") as opened:
        begin = opened.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin.startswith(b"{"):
        return NodeExport(file)
    if not begin or begin.startswith(b"<"):
        return ArtemisExport(file)
    raise Refused(f"{file}: neither XML of `artemis data exp` nor JSON lines of `atalanta data export`", BAD_DATA)


def surveyed(file: Path) -> ExportSurvey:
    """Reads the whole file once. Its definitions are then known, and the messages can be read from the beginning."""
    first = ExportSurvey(export_of(file))
    first.read()
    again = export_of(file)
    again.addresses.update(first.export.addresses)
    again.bindings.update(first.export.bindings)
    return ExportSurvey(again, first.messages, first.by_address)


def run_import(file: Path, target: BrokerLogin, dry_run: bool, json_output: bool, quiet: bool) -> None:
    """Imports a file and prints a summary. Errors end the process (cli/output/outcome.py)."""

    async def imported(survey: ExportSurvey) -> Import:
        async with target.connect() as connection:
            work = Import(survey, connection)
            await work.compare()
            tell(work.notes)
            if not dry_run:
                with Bar("imported", survey.total, quiet or json_output) as bar:
                    await work.send_all(bar)
            return work

    with reported():
        survey = surveyed(file)
        work = run(imported(survey))
        if dry_run:
            show_plan(work, survey, json_output)
        elif json_output:
            found = {"sent": work.sent, "repeated": work.repeated, "left": work.left, "created": work.created()}
            typer.echo(json.dumps(found))
        elif not quiet:
            for what, names in work.created().items():
                if names:
                    typer.echo(f"created {what}: {', '.join(plain(name) for name in names)}", err=True)
            again = f"; {messages(work.repeated)} of an earlier import were there already" if work.repeated else ""
            typer.echo(f"sent {messages(work.sent)}{again}", err=True)
        for queue, count in work.left.items():
            why = "it was for another node: let the nodes deliver before the export"
            typer.echo(f"atalanta: {messages(count)} of {queue} not imported, {why}", err=True)


def tell(notes: list[str]) -> None:
    for note in notes:
        typer.echo(f"atalanta: {note}", err=True)


def show_plan(work: Import, survey: ExportSurvey, json_output: bool) -> None:
    """Prints what an import would send where, and what it would create."""
    rows = [
        {
            "queue": binding.name,
            "address": binding.address,
            "routing_type": binding.routing,
            "filter": binding.filter,
            "messages": survey.messages.get(binding.name, 0),
            "exists": binding.name in work.there,
            "messages_there": work.there.get(binding.name, 0),
        }
        for binding in work.bindings()
    ]
    if json_output:
        found = {"dry_run": True, "messages": work.total, "queues": rows, "left": work.left, "created": work.created()}
        typer.echo(json.dumps(found))
        return
    if work.new_addresses:
        typer.echo(f"would create addresses: {', '.join(plain(name) for name in work.new_addresses)}", err=True)
    show_table(
        COLUMNS,
        [
            [
                str(row["queue"]), str(row["address"]), str(row["routing_type"]).upper(), f"{row['messages']:,}",
                f"{row['messages_there']:,}" if row["exists"] else CREATED,
            ]
            for row in rows
        ],
        ("messages", "there now"),
    )  # fmt: skip
    typer.echo(
        f"would send {messages(work.total)} to {counted(len(rows), 'queue')}; nothing was sent. Messages of an earlier "
        "import of them are not sent again",
        err=True,
    )
