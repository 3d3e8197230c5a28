"""`atalanta data import`: sends the messages of an export of Artemis to the queues that they were in."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Final

import typer

from atalanta.cli.data.artemis_export import ArtemisExport, Binding, Exported
from atalanta.cli.output.escape import messages
from atalanta.cli.output.outcome import reported
from atalanta.cli.output.progress import Bar
from atalanta.cli.target import Target
from atalanta.client import AddressExists, Connection, Producer, run
from atalanta.client.message import ANYCAST

INTERNAL_PREFIX: Final = "$"  # of queues for other nodes: $.artemis.internal.sf.…


class Import:
    """One import. `sent` counts copies: a message that was in two queues is sent to each of them."""

    def __init__(self, export: ArtemisExport, connection: Connection) -> None:
        self.sent = 0
        self.left: dict[str, int] = {}  # messages of queues that are not imported, by queue
        self._export = export
        self._connection = connection
        self._producers: dict[str, Producer] = {}
        self._duplicate_ids: set[tuple[str, str | bytes]] = set()  # with the address that has them

    async def send_all(self, bar: Bar) -> None:
        """Sends everything; returns when the broker has stored it."""
        for exported in self._export.messages():
            with closing(exported.body):
                await self._send(exported)
            bar.advance(1)
        for address in list(self._export.addresses):
            await self._create_address(address)
        for binding in self._export.bindings.values():
            await self._producer(binding.name)  # empty queues, subscriptions above all, are created too
        for producer in self._producers.values():
            await producer.drain()

    async def _send(self, exported: Exported) -> None:
        for queue in exported.queues:
            producer = await self._producer(queue)
            if producer is None:
                self.left[queue] = self.left.get(queue, 0) + 1
                continue
            message = exported.message()
            if message.duplicate_id is not None:
                sent = (producer.address.partition("::")[0], message.duplicate_id)
                if sent in self._duplicate_ids:
                    message.duplicate_id = None  # the node would drop it: dead letters may share one, and copies do
                self._duplicate_ids.add(sent)
            if message.stream is None:
                await producer.send_soon(message)
            else:
                await producer.send(message)
            self.sent += 1

    async def _producer(self, queue: str) -> Producer | None:
        """Returns the producer for a queue, which is created if it is missing; None for queues of the cluster."""
        if queue.startswith(INTERNAL_PREFIX):
            return None
        found = self._producers.get(queue)
        if found is None:
            binding = self._export.bindings.get(queue) or Binding(queue, queue, ANYCAST, None)
            await self._create_address(binding.address)
            await self._connection.create_queue(
                queue, binding.address, binding.routing, filter=binding.filter, ignore_existing=True
            )
            found = await self._connection.producer(f"{binding.address}::{queue}", binding.routing)
            self._producers[queue] = found
        return found

    async def _create_address(self, name: str) -> None:
        """Creates an address with its routing types, once; an existing one stays as it is."""
        routing = self._export.addresses.pop(name, [])
        if routing and not name.startswith(INTERNAL_PREFIX):
            try:
                await self._connection.create_address(name, *routing)
            except AddressExists:
                pass


def run_import(file: Path, target: Target, json_output: bool, quiet: bool) -> None:
    """Imports a file and prints a summary. Errors end the process (cli/output/outcome.py)."""

    async def imported(bar: Bar) -> Import:
        async with target.connect() as connection:
            work = Import(ArtemisExport(file), connection)
            await work.send_all(bar)
            return work

    with reported():
        with Bar("imported", None, quiet or json_output) as bar:
            work = run(imported(bar))
        if json_output:
            typer.echo(json.dumps({"sent": work.sent, "left": work.left}))
        elif not quiet:
            typer.echo(f"sent {messages(work.sent)}", err=True)
        for queue, count in work.left.items():
            why = "it was for another node: let the Artemis nodes deliver before the export"
            typer.echo(f"atalanta: {messages(count)} of {queue} not imported, {why}", err=True)
